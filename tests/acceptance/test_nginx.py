"""The nginx sample as documented: executors, scripts and browsers reach the console through it, over TLS."""

import ipaddress
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from requests.adapters import HTTPAdapter

from tests.acceptance.cluster import Cluster
from tests.acceptance.console import Console
from tests.acceptance.programs import ROOT, free_port
from tests.support.acceptance import shared
from tests.support.eventually import eventually
from tests.support.fake_executor import Answer, FakeExecutor

pytestmark = [pytest.mark.nginx, pytest.mark.databases("sqlite")]

SAMPLE = ROOT / "deploy" / "nginx" / "xxl-job.conf"
CONTEXT = "/jobs/xxl-job-admin"
MIB = 1024 * 1024
#: what a host's own nginx.conf contains, with files in one folder and without root
MAIN = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/xxl-job.conf;
}}
"""


@dataclass
class Site:
    """A cluster behind nginx."""

    cluster: Cluster
    plain_port: int
    authority: str
    group_id: int

    @property
    def address(self) -> str:
        return self.cluster.console.address


def make_certificate(folder: Path) -> None:
    """Write a self-signed certificate for localhost and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "fullchain.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "privkey.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


def configure(folder: Path, *, plain_port: int, port: int, console_port: int) -> None:
    """Write the sample with ports, name and certificate of this test."""
    text = SAMPLE.read_text()
    changes = {
        "listen 80;": f"listen 127.0.0.1:{plain_port};",
        "listen 443 ": f"listen 127.0.0.1:{port} ",
        "jobs.example.com;": "localhost;",
        "/etc/ssl/xxl-job/": f"{folder}/",
        "server 127.0.0.1:8080;": f"server 127.0.0.1:{console_port};",
    }
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "xxl-job.conf").write_text(text)
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder))


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("nginx")
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") or "nginx"
    folder.chmod(0o755)
    make_certificate(folder)
    with shared(request.config, "sqlite", folder) as cluster:
        port, plain_port = free_port(), free_port()
        configure(folder, plain_port=plain_port, port=port, console_port=cluster.port)
        cluster.console = Console(f"https://localhost:{port}{CONTEXT}")
        cluster.console.http.verify = str(folder / "fullchain.pem")
        cluster.settings |= {
            "XXL_JOB_CONTEXT_PATH": CONTEXT,
            "XXL_JOB_PROXY_COUNT": "1",
            "XXL_JOB_PUBLIC_URL": cluster.console.address,
            "SSL_CERT_FILE": str(folder / "fullchain.pem"),
        }
        cluster.programs.start("nginx", [nginx, "-p", str(folder), "-c", "nginx.conf"], {})
        cluster.start_console()
        cluster.start_client("executor_client.demo", appname="demo")
        cluster.start_workers()
        cluster.console.login()
        group_id = cluster.console.add_group("demo")
        cluster.console.await_addresses(group_id)
        yield Site(cluster, plain_port, str(folder / "fullchain.pem"), group_id)


def test_an_executor_registers_runs_and_reports_through_it(site: Site) -> None:
    console = site.cluster.console
    job_id = console.add_job(site.group_id, executorHandler="sleepJobHandler")
    console.trigger(job_id, param="0.1")
    (run,) = console.await_runs(site.group_id, job_id, 1)
    assert run["handleCode"] == 200
    assert "sleeping for 0.1 s" in console.log_text(run["id"])


def test_pages_are_below_the_path_and_cookies_need_tls(site: Site) -> None:
    with requests.Session() as browser:
        browser.trust_env, browser.verify = False, site.authority
        start = browser.get(f"{site.address}/", timeout=20)
        assert start.url == f"{site.address}/toLogin"
        assert f'href="{CONTEXT}/static/' in start.text
        assert "max-age=" in start.headers["Strict-Transport-Security"]
        root = site.address.removesuffix(CONTEXT)
        answer = browser.get(f"{root}/", timeout=20, allow_redirects=False)
        assert answer.headers["Location"].endswith(f"{CONTEXT}/")
    cookies = site.cluster.console.http.cookies
    assert {cookie.secure for cookie in cookies} == {True}


def test_plain_http_leads_to_tls(site: Site) -> None:
    answer = requests.get(
        f"http://localhost:{site.plain_port}{CONTEXT}/toLogin", timeout=20, allow_redirects=False
    )
    assert answer.status_code == 308
    assert answer.headers["Location"].startswith("https://localhost")


def test_the_console_sees_the_address_of_the_client(site: Site) -> None:
    """Whatever the client says about it."""
    with requests.Session() as client:
        client.trust_env, client.verify = False, site.authority
        adapter = HTTPAdapter()
        adapter.init_poolmanager(1, 1, source_address=("127.0.0.9", 0))
        client.mount("https://", adapter)
        form = {"userName": "admin", "password": "not this one"}
        client.post(
            f"{site.address}/login", data=form, headers={"X-Forwarded-For": "203.0.113.7"}, timeout=20
        )
    (row,) = site.cluster.select("SELECT address FROM xxl_job_audit ORDER BY id DESC LIMIT 1")
    assert row["address"] == "127.0.0.9"


@pytest.mark.parametrize(("size", "refused"), [(15 * MIB, False), (17 * MIB, True)])
def test_large_reports_of_results_pass(site: Site, size: int, refused: bool) -> None:
    body = b"[" + b" " * size + b"]"
    answer = requests.post(f"{site.address}/api/callback", data=body, verify=site.authority, timeout=30)
    assert (answer.status_code == 413) is refused


def test_a_log_is_shown_while_it_is_fetched(site: Site) -> None:
    console, rest = site.cluster.console, threading.Event()
    first = {"fromLineNum": 1, "toLineNum": 1, "logContent": "first", "isEnd": False}
    second = {"fromLineNum": 2, "toLineNum": 2, "logContent": "second", "isEnd": False}
    end = {"fromLineNum": 3, "toLineNum": 2, "logContent": "", "isEnd": True}
    with FakeExecutor() as executor:
        group_id = console.add_group("slow-log", addressType=1, addressList=executor.address)
        job_id = console.add_job(group_id)
        console.trigger(job_id)
        runs = eventually(
            lambda: [row for row in console.runs(group_id, job_id) if row["triggerCode"] == 200]
        )
        executor.respond(
            "log",
            Answer.json(content=first),
            Answer.json(content=second).but(wait=rest),
            Answer.json(content=end),
        )
        with console.http.get(
            f"{site.address}/joblog/{runs[0]['id']}/log.txt",
            stream=True,
            timeout=20,
            headers={"Accept-Encoding": "identity"},
        ) as answer:
            pieces = answer.iter_content(None)
            assert next(pieces) == b"first\n"
            rest.set()
            assert b"".join(pieces) == b"second\n"
