"""ASGI: ``uvicorn mysite.asgi:application --workers 4``."""

import os

from django.core.asgi import get_asgi_application

from executor_client import Executor

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
site = get_asgi_application()

import mysite.jobs  # noqa: E402, F401 - needs the settings; its import makes the handlers known

executor = Executor.from_env()
# starts and stops the executor with the server
application = executor.asgi_app(site, prefix="/xxl-job")
