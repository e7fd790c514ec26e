"""Private names of the standard library and inner ones of waitress that the client uses."""

import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.thread import _worker

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.receiver import ChunkedReceiver
from waitress.server import TcpWSGIServer
from waitress.task import ErrorTask, ThreadedTaskDispatcher, WSGITask

from executor_client import compat
from tests.support.truth_table import truth_table

EARLY = """
import atexit
from executor_client.compat import register_early
atexit.register(print, "at exit")
register_early(lambda: print("early"))
"""


def test_an_early_function_is_called_before_atexit() -> None:
    printed = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True, check=True).stdout
    assert printed.split("\n")[:2] == ["early", "at exit"]


def test_a_worker_of_a_thread_pool_is_recognised() -> None:
    with ThreadPoolExecutor(1) as pool:
        worker = pool.submit(threading.current_thread).result()
        assert compat.is_of_thread_pool(worker)
    assert not compat.is_of_thread_pool(threading.current_thread())


def test_the_manager_of_a_process_pool_is_recognised() -> None:
    before = set(threading.enumerate())
    with ProcessPoolExecutor(1) as pool:
        pool.submit(int).result()
        managers = [each for each in set(threading.enumerate()) - before if compat.is_of_process_pool(each)]
        assert len(managers) == 1


def test_the_code_of_an_idle_worker_is_known() -> None:
    assert compat.pool_worker_code() is _worker.__code__


@truth_table(
    "inner, names",
    [
        (WSGITask, "get_environment execute"),
        (ErrorTask, "execute"),
        (ThreadedTaskDispatcher, "start_new_thread add_task shutdown"),
        (
            HTTPChannel,
            "error_task_class parser_class task_class received service total_outbufs_len will_close",
        ),
        (TcpWSGIServer, "accept channel_class maintenance pull_trigger readable"),
        (HTTPRequestParser, "body_rcv chunked empty parse_header received"),
        (ChunkedReceiver, "received"),
    ],
)
def test_the_names_of_waitress_that_httpd_replaces_exist(inner: type, names: str) -> None:
    assert [name for name in names.split() if not hasattr(inner, name)] == []
