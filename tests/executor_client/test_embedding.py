"""Executors in applications with several workers: the documented examples, and workers that are killed."""

import os
import shutil
import signal
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from tests.executor_client.process import ROOT
from tests.executor_client.site import Site
from tests.executor_client.stand_in_admin import StandInAdmin
from tests.support.eventually import eventually
from tests.support.executor_client import T0

EXAMPLES = ROOT / "docs" / "examples"
GUNICORN = ("gunicorn", "--workers", "2", "--bind", "127.0.0.1:{port}")
UVICORN = ("uvicorn", "--workers", "2", "--port", "{port}")


@pytest.mark.module("gunicorn")
@pytest.mark.module("uvicorn")
@pytest.mark.module("django")
@pytest.mark.module("fastapi")
@pytest.mark.parametrize(
    ("folder", "server"),
    [
        pytest.param("flask", (*GUNICORN, "wsgi:app"), id="flask"),
        pytest.param("flask", (*GUNICORN, "--preload", "--threads", "2", "wsgi:app"), id="preload"),
        pytest.param("django", (*GUNICORN, "mysite.wsgi"), id="django"),
        pytest.param("django", (*UVICORN, "mysite.asgi:application"), id="django-asgi"),
        pytest.param("fastapi", (*UVICORN, "main:application"), id="fastapi"),
    ],
)
def test_the_examples_run_jobs_in_any_worker(
    tmp_path: Path, admin: StandInAdmin, folder: str, server: tuple[str, ...]
) -> None:
    with Site(EXAMPLES / folder, tmp_path, admin.url, *server) as site:
        eventually(lambda: admin.bodies("registry"), message=lambda: site.output.read_text())
        caller = site.caller
        for log_id in range(1, 11):
            caller.accepted(log_id, executorHandler="closeOrders", executorParams="may")
        eventually(lambda: len(admin.codes()) == 10)
        assert set(admin.results) == {(log_id, 200, "3 orders closed") for log_id in range(1, 11)}
        for log_id in range(1, 11):
            reply = caller.post("/log", {"logId": log_id, "logDateTim": T0, "fromLineNum": 1})
            assert "closing orders of may" in str(reply["content"]), reply
        caller.token = "wrong-token-0123456789"
        assert {caller.post("/beat")["msg"] for _ in range(6)} == {"The access token is wrong."}
        assert {body["registryValue"] for body in admin.bodies("registry")} == {f"{site.url}/xxl-job/"}
        eventually(site.is_up, message=lambda: site.output.read_text())
        site.terminate()
    assert admin.bodies("registryRemove")
    assert "Traceback" not in site.output.read_text()


DJANGO_JOBS = """
from django.contrib.contenttypes.models import ContentType
from executor_client import job

@job("count", process=True)
def count():
    return ContentType.objects.none().count()
"""


@pytest.mark.module("gunicorn")
@pytest.mark.module("django")
def test_a_process_handler_can_import_the_models_of_its_site(tmp_path: Path, admin: StandInAdmin) -> None:
    folder = tmp_path / "django"
    shutil.copytree(EXAMPLES / "django", folder)
    (folder / "mysite" / "jobs.py").write_text(DJANGO_JOBS)
    with (folder / "mysite" / "settings.py").open("a") as settings:
        settings.write('INSTALLED_APPS = ["django.contrib.contenttypes"]\n')
    with Site(folder, tmp_path, admin.url, *GUNICORN, "mysite.wsgi") as site:
        eventually(lambda: admin.bodies("registry"), message=lambda: site.output.read_text())
        site.caller.accepted(1, executorHandler="count")
        eventually(lambda: admin.codes())
        site.terminate()
    assert admin.message(1) == "0"


RECORDING_SITE = """
from flask import Flask
import tests.executor_client.recording
from executor_client import Executor
app = Flask(__name__)
app.add_url_rule("/", view_func=lambda: "the site")
executor = Executor.from_env()
app.wsgi_app = executor.wsgi_app(app.wsgi_app, prefix="/xxl-job")
executor.start()
"""


class Visitor(threading.Thread):
    """Visitor of a site, who counts failures."""

    def __init__(self, site: Site) -> None:
        super().__init__(daemon=True)
        self._site = site
        self._done = threading.Event()
        self.visits: Counter[bool] = Counter()

    def run(self) -> None:
        while not self._done.wait(0.01):
            self.visits[self._site.is_up()] += 1

    def end(self) -> None:
        self._done.set()
        self.join(10)


@pytest.mark.module("gunicorn")
def test_another_worker_takes_over_from_a_killed_one(tmp_path: Path, admin: StandInAdmin) -> None:
    (tmp_path / "wsgi.py").write_text(RECORDING_SITE)
    with Site(
        tmp_path, tmp_path, admin.url, *GUNICORN, "--workers", "3", "--threads", "4", "wsgi:app"
    ) as site:
        eventually(lambda: admin.bodies("registry"), message=lambda: site.output.read_text())
        visitor = Visitor(site)
        visitor.start()
        holders = []
        signals = [signal.SIGTERM, signal.SIGKILL, signal.SIGKILL]
        for log_id in range(1, 121):
            send(site, log_id)
            if log_id % 40 == 0:
                holder = eventually(site.holder)
                holders.append(holder)
                os.kill(holder, signals.pop())
        eventually(lambda: len(admin.codes()) == 120, message=lambda: site.output.read_text())
        visitor.end()
        # the address stays registered while a worker stands by
        assert admin.bodies("registryRemove") == []
        site.terminate()
        starts = Counter((tmp_path / "recording").read_text().split("\n"))
    assert len(set(holders)) == 3
    assert [line for line, count in starts.items() if line.startswith("start") and count > 1] == []
    # a run that the killed worker had started is reported as failed, and not repeated
    codes = Counter(admin.codes().values())
    assert set(codes) <= {200, 500}
    assert codes[200] >= 100
    # only a connection that the killed worker had accepted is lost
    assert visitor.visits[True] > 50
    assert visitor.visits[False] <= 3 * 4


def send(site: Site, log_id: int) -> None:
    """Send a run until it is accepted, as an admin with retries does."""
    fields = {"jobId": log_id % 7 + 1, "executorHandler": "record", "executorParams": "30"}

    def is_accepted() -> bool:
        with suppress(requests.RequestException):
            return int(site.caller.run(log_id, **fields)["code"]) == 200
        return False

    eventually(is_accepted)
