"""Known holes between console and executors without a CVE number, attacked over HTTP.

Source: docs/reference/security.md, section 4.2.
"""

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import requests

from app.clock import now_ms
from app.models.group import Group
from app.models.log import JobLog
from app.models.registry import Registration
from tests.security.rows import BEAN, MARKUP
from tests.security.site import BOUND_TOKEN, TIMEOUT_S, Site, await_true
from tests.support.fake_executor import Answer, FakeExecutor

WRONG_TOKEN = "The access token is wrong."
#: 2024-05-01 03:04:05 UTC
T0 = 1_714_532_645_000
FORBIDDEN = (
    "http://169.254.169.254",
    "http://[fd00:ec2::254]",
    "http://100.100.100.200",
    "http://0.0.0.0:9999",
    "http://8.8.8.8:9999",
    "http://10.0.0.5:22",
    "http://user@10.0.0.5:9999",
    "ftp://10.0.0.5:9999",
    "http://10.0.0.5:9999?x=1",
    "file:///etc/passwd",
)


def registration(app_name: str, address: str) -> dict[str, str]:
    return {"registryGroup": "EXECUTOR", "registryKey": app_name, "registryValue": address}


def run_request(**changes: Any) -> dict[str, Any]:
    fields = {"jobId": 77, "logId": 77, "logDateTime": T0, "glueType": "BEAN", "executorHandler": "record"}
    return {**fields, **changes}


def recorded(site: Site) -> str:
    """Return what the handlers of our executor did."""
    path = site.cluster.folder / "recording"
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize("token", ["", "x", "default_token", "null"])
def test_unauthenticated_executor(site: Site, token: str) -> None:
    before = recorded(site)
    for action in ("run", "trigger", "kill", "log", "beat", "idleBeat", "known", "metrics", "nope"):
        answer = site.to_executor(action, run_request(), token)
        assert (answer["code"], answer["msg"]) == (500, WRONG_TOKEN), action
    assert recorded(site) == before


@pytest.mark.parametrize(
    "token", ["default_token", "", "xxl-job", "123456", "{site}x", "{site},default_token"]
)
def test_default_access_token_rce(site: Site, token: str) -> None:
    guessed = token.format(site=site.token)
    refusal = WRONG_TOKEN if guessed else "No access token was given."
    assert site.to_executor("run", run_request(), guessed)["msg"] == WRONG_TOKEN
    body = registration("default-app", "http://10.0.0.5:9999")
    assert site.machine("registry", body, guessed)["msg"] == refusal
    assert site.machine("callback", [{"logId": site.one.run, "handleCode": 200}], guessed)["msg"] == refusal
    assert len(site.token) >= 32
    assert (site.cluster.folder / "home" / "access_token").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "body", [b"c\x02\x00m\x00\x08registry\x4d\x74\x00\x01xz", b"\xac\xed\x00\x05sr\x00\x01x"]
)
def test_hessian_on_api(site: Site, body: bytes) -> None:
    headers = {"XXL-JOB-ACCESS-TOKEN": site.token, "Content-Type": "x-application/hessian"}
    for url in (
        *(f"{site.url}/api/{action}" for action in ("registry", "registryRemove", "callback")),
        *(f"{site.own_executor}/{action}" for action in ("run", "kill", "log")),
    ):
        answer = requests.post(url, data=body, headers=headers, timeout=TIMEOUT_S)
        assert answer.json()["code"] == 500, url
    for url in (f"{site.url}/api", f"{site.url}/", f"{site.own_executor}/"):
        answer = requests.post(url, data=body, headers=headers, timeout=TIMEOUT_S, allow_redirects=False)
        assert answer.status_code in (302, 405) or answer.json()["code"] == 500, url


@pytest.mark.parametrize("action", ["addJob", "updateJob", "removeJob", "triggerJob", "loadById", "addGroup"])
def test_openapi_is_administrator(site: Site, action: str) -> None:
    """A token registers and reports results, and nothing else."""
    before = site.count("xxl_job_info")
    assert "not found" in site.machine(action, {"id": site.one.job, "appname": "group-one"})["msg"]
    headers = {"XXL-JOB-ACCESS-TOKEN": site.token}
    for path in (f"/openapi/{action}", "/jobinfo/add", "/jobinfo/trigger"):
        response = site.anonymous().send("POST", path, json={"id": site.one.job}, headers=headers)
        assert response.status_code in (302, 404), path
    assert site.count("xxl_job_info") == before


def test_registry_poisoning(site: Site) -> None:
    """A group with a token of its own has no executors but those that know it."""
    genuine, poisoned = (registration("bound-app", f"http://10.0.0.{host}:9999/") for host in (5, 66))
    await_true(lambda: site.machine("registry", genuine, BOUND_TOKEN)["code"] == 200, "its token is accepted")
    for token in (site.token, "token-of-another-app-01"):
        assert site.machine("registry", poisoned, token)["msg"] == WRONG_TOKEN
        assert site.machine("registryRemove", genuine, token)["msg"] == WRONG_TOKEN
    assert (
        site.machine("registry", registration("group-one", "http://10.0.0.66:9999"), BOUND_TOKEN)["msg"]
        == WRONG_TOKEN
    )
    groups = {group.app_name: group.address_list for group in site.rows(Group)}
    assert groups["bound-app"] == "http://10.0.0.5:9999/"
    assert groups["group-one"] == site.executor.address


@pytest.mark.parametrize("address", FORBIDDEN)
def test_registry_poisoning_by_address(site: Site, address: str) -> None:
    answer = site.machine("registry", registration("poisoned-app", address))
    assert answer["code"] == 500
    assert answer["msg"] != WRONG_TOKEN
    form = {"appname": "poisoned-app", "title": "poisoned", "addressType": 1, "addressList": address}
    site.admin.refused("/jobgroup/save", **form)
    assert not [row for row in site.rows(Registration) if row.registry_key == "poisoned-app"]


def test_callback_forgery(site: Site) -> None:
    child = site.new_job(site.one)
    parent = site.new_job(site.one, child_jobid=str(child))
    unsent = site.new_run(site.one, job_id=parent, trigger_code=500)
    ended = site.new_run(site.one, job_id=parent, handle_code=500, handle_msg="genuine", handle_time=now_ms())
    forged = [
        {"logId": log_id, "logDateTim": T0, "handleCode": 200, "handleMsg": "forged"}
        for log_id in (unsent, ended, 987_654, 0, -1, 2**63 - 1)
    ]
    assert site.machine("callback", forged, "wrong-token-0123456789")["msg"] == WRONG_TOKEN
    assert site.machine("callback", forged)["code"] == 200
    assert site.row(JobLog, unsent).handle_code == 0
    assert (site.row(JobLog, ended).handle_code, site.row(JobLog, ended).handle_msg) == (500, "genuine")
    assert site.cluster.select("SELECT id FROM xxl_job_fire WHERE job_id = :job", job=child) == []
    assert not [run for run in site.rows(JobLog) if run.job_id == child]


def test_registry_xss(site: Site) -> None:
    address = f"http://10.0.0.5:9999/{MARKUP}"
    assert site.machine("registry", registration("marked-app", address))["code"] == 500
    assert site.machine("registry", registration(MARKUP, "http://10.0.0.5:9999"))["code"] == 200
    page = site.admin.get("/jobgroup").text
    assert MARKUP not in page
    assert MARKUP in unescape(page), "the waiting application is listed as text"


def test_groovy_without_sandbox(site: Site) -> None:
    source = "Runtime.getRuntime().exec('id')"
    answer = site.to_executor("run", run_request(glueType="GLUE_GROOVY", glueSource=source))
    assert answer["code"] == 500
    assert "GLUE_GROOVY" in answer["msg"]
    script = BEAN | {"jobGroup": site.one.group, "glueType": "GLUE_GROOVY", "glueSource": source}
    assert site["editor"].refused("/jobinfo/add", **script) == "permission denied"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_trust_all_tls_redirects(site: Site, status: int) -> None:
    with FakeExecutor() as executor, FakeExecutor() as target:
        executor.respond("*", Answer(status=status, headers=(("Location", f"{target.address}log"),)))
        run = site.new_run(site.one, executor_address=executor.address)
        assert site["viewer"].refused("/joblog/logDetailCat", logId=run, fromLineNum=1)
        assert len(executor.requests) == 1
        assert target.requests == []


def test_trust_all_tls(site: Site, tmp_path: Path) -> None:
    """An executor with a certificate that no authority signed gets neither request nor token."""
    with tls_listener(tmp_path) as (port, received):
        run = site.new_run(site.one, executor_address=f"https://127.0.0.1:{port}/")
        assert "certificate" in site["viewer"].refused("/joblog/logDetailCat", logId=run, fromLineNum=1)
    assert received == []


@contextmanager
def tls_listener(folder: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Listen with a self-signed certificate; yield the port and what arrives inside TLS."""
    made, key = folder / "made.pem", folder / "key.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=x -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run(
        [*command.split(), "-keyout", str(key), "-out", str(made)], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    received: list[bytes] = []

    def serve(server: socket.socket) -> None:
        try:
            connection, _ = server.accept()
            with connection, context.wrap_socket(connection, server_side=True) as inside:
                received.append(inside.recv(65536))
        except OSError:
            return

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        yield server.getsockname()[1], received
        thread.join(TIMEOUT_S)


def test_stack_traces_to_the_caller(site: Site) -> None:
    broken: tuple[Any, ...] = ([], 5, "x", {"logId": {"a": 1}}, {"jobId": "x", "logId": []}, [[]], None)
    answers = [str(site.machine(action, body)) for action in ("registry", "callback") for body in broken]
    answers += [str(site.to_executor(action, body)) for action in ("run", "kill", "log") for body in broken]
    site.executor.respond("log", Answer(body=b"\xff{", status=500))
    answers.append(site["viewer"].post("/joblog/logDetailCat", logId=site.one.run, fromLineNum=1).text)
    answers.append(site["viewer"].get(f"/joblog/{site.one.run}/lines?from=1").text)
    answers.append(site["viewer"].get("/joblog/%FF%FE?x=%00").text)
    for answer in answers:
        assert not any(sign in answer for sign in ("Traceback", 'File "', ".py", "sqlalchemy", "xxl_job_"))


@pytest.mark.parametrize("date", [1, T0, -1, 10**15, 10**18, 2**63 - 1, "2024-05-01", "../../etc", [T0]])
def test_directory_creation_by_log_date(site: Site, date: Any) -> None:
    root = site.cluster.folder / "home-client"

    def folders() -> list[Path]:
        return sorted(path for path in root.rglob("*") if path.is_dir() or path.suffix == ".log")

    before = folders()
    for name in ("logDateTim", "logDateTime"):
        for log_id in (1, "../../access_token", "1/../../x"):
            answer = site.to_executor("log", {"logId": log_id, name: date, "fromLineNum": 1})
            assert answer["code"] == 500 or answer["content"]["toLineNum"] == 0
    assert folders() == before


def test_unbounded_log_read(site: Site) -> None:
    """A page of a log is bounded, and so is the answer to a console that knows no pages."""
    folder = site.cluster.folder / "home-client" / "executor-logs" / "2024-05-01"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "4242.log").write_text(("x" * 99 + "\n") * 200_000)
    for name, most in (("logDateTime", 512 * 1024), ("logDateTim", 17 * 1024 * 1024)):
        response = requests.post(
            f"{site.own_executor}/log",
            json={"logId": 4242, name: T0, "fromLineNum": 1},
            headers={"XXL-JOB-ACCESS-TOKEN": site.token},
            timeout=TIMEOUT_S,
        )
        assert 100_000 < len(response.content) <= most
        assert response.json()["content"]["isEnd"] is False


def test_response_read_without_limit(site: Site) -> None:
    text = "x" * (4 * 1024 * 1024)
    site.executor.respond("log", Answer.json(content={"fromLineNum": 1, "toLineNum": 1, "logContent": text}))
    reason = site["viewer"].refused("/joblog/logDetailCat", logId=site.one.run, fromLineNum=1)
    assert "longer than" in reason


def test_registration_flood(site: Site) -> None:
    for host in range(200):
        address = f"http://10.1.0.{host}:9999/{'x' * 200}"
        site.store(
            Registration(
                registry_group="EXECUTOR",
                registry_key="flood-app",
                registry_value=address,
                update_time=now_ms(),
            )
        )
    more = registration("flood-app", "http://10.1.1.1:9999/")
    assert "200 addresses" in site.machine("registry", more)["msg"]
    assert site.machine("registry", registration("flood-app", address))["code"] == 200, "a heartbeat is none"
    too_long = registration("other-app", "http://10.1.1.1:9999/" + "x" * 300)
    assert site.machine("registry", too_long)["code"] == 500
    site.store(Group(app_name="calm-app", title="Calm", address_type=0))
    assert site.machine("registry", registration("calm-app", "http://10.1.1.2:9999/"))["code"] == 200
    calm = next(group for group in site.rows(Group) if group.app_name == "calm-app")
    assert calm.address_list == "http://10.1.1.2:9999/"


def test_noisy_neighbour(site: Site) -> None:
    """Runs on executors that hang delay no other group's run: it arrives while they still hang."""
    released = threading.Event()
    with FakeExecutor() as hanging, FakeExecutor() as calm:
        hanging.respond("run", Answer(wait=released))
        noisy_group, calm_group = (
            site.store(Group(app_name=name, title=name, address_type=1, address_list=executor.address))
            for name, executor in (("noisy-app", hanging), ("quiet-app", calm))
        )
        noisy = site.admin.call("/jobinfo/add", **(BEAN | {"jobGroup": noisy_group}))["content"]
        quiet = site.admin.call("/jobinfo/add", **(BEAN | {"jobGroup": calm_group}))["content"]
        for number in range(24):
            site.admin.call("/jobinfo/trigger", id=noisy, executorParam=number)
        await_true(lambda: len(hanging.requests_for("run")) >= 10, "the hanging executor has runs")
        site.admin.call("/jobinfo/trigger", id=quiet)
        try:
            await_true(lambda: calm.requests_for("run"), "the other group's run arrives")
            (run,) = calm.requests_for("run")
            assert run.headers["XXL-JOB-ACCESS-TOKEN"] == site.token
        finally:
            released.set()
        site.admin.call("/jobinfo/remove", id=noisy)


def test_third_party_executors_ignore_the_token(site: Site) -> None:
    """Ours compares it; of others the console's connection check says so."""
    assert site.to_executor("beat", {}, "wrong-token-0123456789")["msg"] == WRONG_TOKEN
    assert site.to_executor("kill", {"jobId": 1}, "wrong-token-0123456789")["msg"] == WRONG_TOKEN
    page = site.admin.submit(f"/jobgroup/{site.one.group}/test").text
    assert "accepts any token" in page
