"""Settings of the site; a real one has more."""

import os
import secrets

SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY") or secrets.token_urlsafe()
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
ROOT_URLCONF = "mysite.urls"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}
USE_TZ = True
# Django sets TZ to this, by default to America/Chicago; logs of runs have the zone at the start of the server
TIME_ZONE = "UTC"
