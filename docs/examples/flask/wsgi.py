"""Flask site with an executor on its port: ``gunicorn wsgi:app --workers 4``.

Settings: ``XXL_JOB_ADMIN_ADDRESSES``, ``XXL_JOB_EXECUTOR_APPNAME``, ``XXL_JOB_ACCESS_TOKEN`` and
``XXL_JOB_EXECUTOR_ADDRESS``, the URL where the console reaches it: ``http://127.0.0.1:8000/xxl-job/``.
"""

from flask import Flask

from executor_client import Executor, context, job

app = Flask(__name__)


@app.get("/")
def index() -> str:
    """Page of the site."""
    return "the site"


@job("closeOrders")
def close_orders() -> str:
    """Handler of a job."""
    context.log("closing orders of %s", context.param)
    return "3 orders closed"


executor = Executor.from_env()
app.wsgi_app = executor.wsgi_app(app.wsgi_app, prefix="/xxl-job")
# in this module, which only the server imports, not flask's commands
executor.start()
