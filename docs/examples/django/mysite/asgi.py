"""ASGI: ``uvicorn mysite.asgi:application --workers 4``.

Settings: ``XXL_JOB_ADMIN_ADDRESSES``, ``XXL_JOB_EXECUTOR_APPNAME``, ``XXL_JOB_ACCESS_TOKEN`` and
``XXL_JOB_EXECUTOR_ADDRESS``, the URL where the console reaches it: ``http://127.0.0.1:8000/xxl-job/``.
"""

import os

from django.core.asgi import get_asgi_application

from executor_client import Executor

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
site = get_asgi_application()

import mysite.jobs  # noqa: E402, F401 - needs the settings; its import makes the handlers known

executor = Executor.from_env()
# starts and stops the executor with the server
application = executor.asgi_app(site, prefix="/xxl-job")
