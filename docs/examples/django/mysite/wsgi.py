"""WSGI: ``gunicorn mysite.wsgi --workers 4``."""

import os

from django.core.wsgi import get_wsgi_application

from executor_client import Executor

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
site = get_wsgi_application()

import mysite.jobs  # noqa: E402, F401 - needs the settings; its import makes the handlers known

executor = Executor.from_env()
application = executor.wsgi_app(site, prefix="/xxl-job")
# in this module, which only the server imports, not manage.py
executor.start()
