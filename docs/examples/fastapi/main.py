"""FastAPI site with an executor on its port: ``uvicorn main:application --workers 4``.

Settings: ``XXL_JOB_ADMIN_ADDRESSES``, ``XXL_JOB_EXECUTOR_APPNAME``, ``XXL_JOB_ACCESS_TOKEN`` and
``XXL_JOB_EXECUTOR_ADDRESS``, the URL where the console reaches it: ``http://127.0.0.1:8000/xxl-job/``.
"""

from fastapi import FastAPI

from executor_client import Executor, context, job

app = FastAPI()


@app.get("/")
async def index() -> dict[str, str]:
    """Page of the site."""
    return {"text": "the site"}


@job("closeOrders")
async def close_orders() -> str:
    """Handler of a job."""
    context.log("closing orders of %s", context.param)
    return "3 orders closed"


executor = Executor.from_env()
# starts and stops the executor with the server
application = executor.asgi_app(app, prefix="/xxl-job")
