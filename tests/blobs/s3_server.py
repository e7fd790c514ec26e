"""S3 server of the tests: versitygw, a gateway to a folder, if it is installed, else a stand-in."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from tests.acceptance.programs import free_port
from tests.blobs.s3_stand_in import stand_in
from tests.support.eventually import eventually

BUCKET = "logs"
ACCESS, SECRET = "tests", "a secret/of the+tests"
SERVER = "versitygw"
#: reason of a test that is left out
MISSING = "no S3 server with signatures: go install github.com/versity/versitygw/cmd/versitygw@latest"


def is_installed() -> bool:
    """Return whether there is a server."""
    return shutil.which(SERVER) is not None


def _is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def s3_server(folder: Path, prefix: str = "") -> Iterator[str]:
    """Run a server with an empty bucket; return the URL of an archive in it."""
    with _gateway(folder) if is_installed() else stand_in() as port:
        keys = f"access_key={ACCESS}&secret_key={quote(SECRET, safe='')}"
        yield f"s3://{BUCKET}{prefix}?endpoint=http://127.0.0.1:{port}&region=us-east-1&{keys}"


@contextmanager
def _gateway(folder: Path) -> Iterator[int]:
    port, data = free_port(), folder / "s3"
    (data / BUCKET).mkdir(parents=True)
    options = ["--access", ACCESS, "--secret", SECRET, "--port", f"127.0.0.1:{port}", "posix", str(data)]
    with (folder / "s3.log").open("wb") as log:
        server = subprocess.Popen([SERVER, *options], stdout=log, stderr=log)
    try:
        eventually(lambda: _is_open(port), 20)
        yield port
    finally:
        server.kill()
        server.wait()
