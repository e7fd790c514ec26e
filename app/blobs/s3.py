"""Bucket of an S3-compatible server as a blob store, by the client of MinIO, which operators install.

The server acknowledges an object when it has it whole; the same name is only written again with the same
content.
"""

import io
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from app.blobs.blob_store import NoBlob, StoredBlob, StoreFull
from app.clock import SECOND_MS
from app.errors import NotConfigured
from app.settings.log_archive import ACCESS_KEY, ENDPOINT, REGION, SECRET_KEY

if TYPE_CHECKING:
    from minio import Minio

#: servers without an endpoint are Amazon's
AMAZON = "https://s3.amazonaws.com"
#: seconds for a connection, and for each read
CONNECT_S, READ_S = 5.0, 10.0
CONNECTIONS = 32
#: seconds after a time-out in which other calls fail at once: a log has many objects, and many readers
SILENT_S = 15.0
_ABSENT = frozenset({"NoSuchKey", "NoSuchObject"})
_FULL = frozenset({"XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "QuotaExceeded"})
#: characters of an error
ERROR_MAX = 200


def require_client() -> None:
    """Raise NotConfigured unless the client is installed."""
    try:
        import minio  # noqa: F401
    except ImportError as exc:
        raise NotConfigured(
            "XXL_JOB_LOG_ARCHIVE_URL: s3:// needs the package minio, which is not installed; install it, or"
            " use file:///folder"
        ) from exc


class Bucket:
    """Blob store in a bucket, below a prefix; connects when it is first needed."""

    reads_at_once = 16

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        # Keys of Amazon have many a plus, which would mean a blank as it is not percent-encoded.
        query = parse_qs(parts.query.replace("+", "%2B"))
        self._parameters = {name: values[0] for name, values in query.items()}
        self._bucket, self._prefix = parts.netloc, parts.path.strip("/")
        self._minio: Minio | None = None
        #: until when calls fail at once, and why
        self._silent_until, self._silence = 0.0, ""

    @property
    def _client(self) -> "Minio":
        if self._minio is None:
            self._minio = _client_of(self._parameters)
        return self._minio

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def put(self, name: str, content: bytes) -> None:
        """Store an object durably."""
        with self._call():
            self._client.put_object(self._bucket, self._key(name), io.BytesIO(content), len(content))

    def get(self, name: str) -> bytes:
        """Return an object."""
        return self._read(name)

    def get_range(self, name: str, start: int, size: int) -> bytes:
        """Return bytes of an object."""
        return self._read(name, offset=start, length=size) if size else b""

    def _read(self, name: str, **part: Any) -> bytes:
        with self._call():
            answer = self._client.get_object(self._bucket, self._key(name), **part)
            try:
                return bytes(answer.read())
            finally:
                answer.close()
                answer.release_conn()

    def delete(self, names: list[str]) -> None:
        """Delete objects."""
        if not names:
            return
        from minio.deleteobjects import DeleteObject

        with self._call():
            objects = [DeleteObject(self._key(name)) for name in names]
            failed = list(self._client.remove_objects(self._bucket, objects))
        if failed:
            raise OSError(f"S3: {len(failed)} objects not deleted: {failed[0].code}")

    def list(self, prefix: str) -> Iterator[StoredBlob]:
        """Yield the objects below a folder."""
        below = self._key(prefix).strip("/")
        prefix_length = len(self._prefix) + 1 if self._prefix else 0
        with self._call():
            objects = self._client.list_objects(self._bucket, f"{below}/" if below else None, recursive=True)
            for item in objects:
                written_ms = int(item.last_modified.timestamp() * SECOND_MS) if item.last_modified else 0
                yield StoredBlob(str(item.object_name)[prefix_length:], int(item.size or 0), written_ms)

    @contextmanager
    def _call(self) -> Iterator[None]:
        """Raise NoBlob, StoreFull or OSError for errors of the client; fail while its server is silent."""
        if time.monotonic() < self._silent_until:
            raise OSError(f"{self._silence}, a moment ago")
        try:
            with _errors():
                yield
        except TimeoutError as exc:
            self._silence, self._silent_until = str(exc), time.monotonic() + SILENT_S
            raise

    def free_bytes(self) -> int | None:
        """Return how much room there is, which a server does not say."""
        return None


def _client_of(parameters: dict[str, str]) -> "Minio":
    from minio import Minio
    from minio.credentials.providers import (
        AWSConfigProvider,
        ChainedProvider,
        EnvAWSProvider,
        IamAwsProvider,
    )
    from urllib3 import PoolManager, Retry, Timeout

    environ = os.environ
    set_endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
    server = urlsplit(parameters.get(ENDPOINT) or set_endpoint or AMAZON)
    access_key, secret_key = parameters.get(ACCESS_KEY), parameters.get(SECRET_KEY)
    region = parameters.get(REGION) or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    options: dict[str, Any] = {"access_key": access_key, "secret_key": secret_key}
    if not access_key:
        providers = [EnvAWSProvider(), AWSConfigProvider(), IamAwsProvider()]
        options = {"credentials": ChainedProvider(providers)}
    pool = PoolManager(
        timeout=Timeout(connect=CONNECT_S, read=READ_S),
        maxsize=CONNECTIONS,
        retries=Retry(total=1, backoff_factor=0.2, status_forcelist=[500, 502, 503, 504]),
    )
    return Minio(
        endpoint=server.netloc, secure=server.scheme == "https", region=region, http_client=pool, **options
    )


@contextmanager
def _errors() -> Iterator[None]:
    """Raise NoBlob, StoreFull or OSError for the errors of the client, TimeoutError for no answer."""
    from minio.error import MinioException, S3Error
    from urllib3.exceptions import HTTPError, MaxRetryError
    from urllib3.exceptions import TimeoutError as NoAnswer

    try:
        yield
    except S3Error as exc:
        if exc.code in _ABSENT:
            raise NoBlob(str(exc.object_name)) from exc
        if exc.code in _FULL:
            raise StoreFull(f"S3: {exc.code}") from exc
        raise OSError(f"S3: {exc.code}: {exc.message}") from exc
    except (MinioException, HTTPError, ValueError) as exc:
        cause = exc.reason if isinstance(exc, MaxRetryError) and exc.reason else exc
        kind = TimeoutError if isinstance(cause, NoAnswer) else OSError
        raise kind(f"S3: {' '.join(str(cause).split())[:ERROR_MAX]}") from exc
