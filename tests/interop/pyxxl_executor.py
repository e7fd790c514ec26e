"""Six handlers on unmodified pyxxl: ``python pyxxl_executor.py ADMIN TOKEN APPNAME PORT FOLDER``."""

import asyncio
import sys
from pathlib import Path

from pyxxl import ExecutorConfig, JobHandler, PyxxlRunner
from pyxxl.ctx import g

admin, token, appname, port, folder = sys.argv[1:]
handler = JobHandler()


@handler.register(name="ok")
async def ok() -> str:
    g.logger.info("hello %s", g.xxl_run_data.executorParams)
    return "done"


@handler.register(name="fail")
async def fail() -> None:
    g.logger.info("about to fail")
    raise RuntimeError("told to fail")


@handler.register(name="sleep")
async def sleep() -> str:
    g.logger.info("asleep for %s s", g.xxl_run_data.executorParams)
    await asyncio.sleep(float(g.xxl_run_data.executorParams))
    return "slept"


@handler.register(name="shard")
async def shard() -> str:
    text = f"shard {g.xxl_run_data.broadcastIndex} of {g.xxl_run_data.broadcastTotal}"
    g.logger.info(text)
    return text


@handler.register(name="lines")
async def lines() -> str:
    for number in range(1, 201):
        g.logger.info("line %s of 200", number)
    return "done"


@handler.register(name="echo")
async def echo() -> str:
    return str(g.xxl_run_data.executorParams)


config = ExecutorConfig(
    xxl_admin_baseurl=f"{admin}/api/",
    executor_app_name=appname,
    access_token=token,
    executor_url=f"http://127.0.0.1:{port}",
    executor_listen_host="127.0.0.1",
    executor_listen_port=int(port),
    log_local_dir=str(Path(folder) / "logs"),
    executor_log_path=str(Path(folder) / "pyxxl.log"),
    dotenv_try=False,
)
PyxxlRunner(config, handler=handler).run_executor()
