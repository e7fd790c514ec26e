"""Blob stores: a folder and a bucket keep the same promises."""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.blobs import s3
from app.blobs.blob_store import BlobStore, NoBlob
from app.blobs.folder import Folder
from app.blobs.s3 import Bucket
from app.blobs.stores import check_store, store_of
from app.errors import NotConfigured
from app.settings.config import Config
from app.settings.log_archive import ArchiveConfig
from tests.blobs.s3_server import MISSING, is_installed, s3_server

NAMES = ["2026/11/30/7/1201/1-40-0f3a.gz", "2026/11/30/7/1202/1-1-aa.gz", "2026/12/01/8/9/名.gz"]


def with_url(url: str) -> Config:
    return Config(archive=ArchiveConfig(url=url))


@pytest.fixture(params=["file", "s3", "s3 with a prefix"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlobStore]:
    if request.param == "file":
        yield store_of(with_url(f"file://{tmp_path}/log%20archive"))
        return
    with s3_server(tmp_path, "/a/b" if "prefix" in request.param else "") as url:
        yield store_of(with_url(url))


def test_objects_are_stored_listed_and_deleted(store: BlobStore) -> None:
    assert list(store.list("")) == []
    for number, name in enumerate(NAMES):
        store.put(name, b"\x1f" * number)
    store.put(NAMES[2], b"again")
    assert [store.get(name) for name in NAMES] == [b"", b"\x1f", b"again"]
    assert (store.get_range(NAMES[2], 1, 3), store.get_range(NAMES[2], 3, 99)) == (b"gai", b"in")
    assert {(blob.name, blob.size) for blob in store.list("")} == {
        (NAMES[0], 0),
        (NAMES[1], 1),
        (NAMES[2], 5),
    }
    assert {blob.name for blob in store.list("2026/11/30/7")} == {*NAMES[:2]}
    assert list(store.list("2026/11/30/7/12")) == []
    assert all(blob.written_ms > 1_700_000_000_000 for blob in store.list(""))
    store.delete([*NAMES[:2], "2026/absent.gz"])
    store.delete([])
    assert [blob.name for blob in store.list("")] == NAMES[2:]
    with pytest.raises(NoBlob):
        store.get(NAMES[0])
    with pytest.raises(NoBlob):
        store.get_range(NAMES[0], 1, 3)


def test_a_server_that_is_away_is_an_os_error() -> None:
    store = Bucket("s3://logs?endpoint=http://127.0.0.1:1&region=eu&access_key=a&secret_key=secret-word")
    with pytest.raises(OSError, match="^S3: .*port=1.*refused") as caught:
        store.put(NAMES[0], b"x")
    assert "secret-word" not in str(caught.value)
    with pytest.raises(OSError, match="^S3: "):
        list(store.list(""))


def test_while_a_server_is_silent_calls_fail_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "READ_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = Bucket(
            f"s3://logs?endpoint=http://127.0.0.1:{silent.getsockname()[1]}&access_key=a&secret_key=b"
        )
        with pytest.raises(OSError, match="^S3: .*timed out"):
            store.get(NAMES[0])
    with pytest.raises(OSError, match="^S3: .*timed out.*, a moment ago"):
        store.get(NAMES[1])
    monkeypatch.setattr(store, "_silent_until", 0.0)
    with pytest.raises(OSError, match="refused"):
        store.get(NAMES[1])


def test_a_plus_in_a_key_need_not_be_encoded() -> None:
    store = Bucket("s3://logs?endpoint=http://127.0.0.1:1&access_key=a&secret_key=b+/c%2B%20d")
    assert store._parameters["secret_key"] == "b+/c+ d"


def test_wrong_keys_are_an_os_error(tmp_path: Path) -> None:
    if not is_installed():
        pytest.skip(MISSING)
    with s3_server(tmp_path) as url, pytest.raises(OSError, match="^S3: SignatureDoesNotMatch"):
        store_of(with_url(f"{url}x")).put(NAMES[0], b"x")


def test_without_its_client_a_bucket_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_store(with_url("s3://logs"))
    monkeypatch.setitem(sys.modules, "minio", None)
    with pytest.raises(NotConfigured, match="^XXL_JOB_LOG_ARCHIVE_URL: s3:// needs the package minio"):
        check_store(with_url("s3://logs"))
    check_store(with_url(""))


def test_a_folder_that_another_process_deletes_as_empty_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of a run that succeeds is deleted while that of the next run of the job is written."""
    store, real, calls = Folder(tmp_path), os.open, list[object]()

    def open_late(path: Path, *args: int) -> int:
        calls.append(path)
        if len(calls) == 1:
            path.parent.rmdir()
        return real(path, *args)

    monkeypatch.setattr(os, "open", open_late)
    store.put(NAMES[0], b"x")
    assert store.get(NAMES[0]) == b"x"


@pytest.mark.parametrize("name", ["../out.gz", "2026/../../out.gz", "{}/out.gz"])
def test_names_of_a_row_do_not_lead_out_of_a_folder(name: str, tmp_path: Path) -> None:
    outside, store = tmp_path / "out.gz", Folder(tmp_path / "archive")
    outside.write_bytes(b"x")
    store.put(NAMES[0], b"y")
    with pytest.raises(NoBlob):
        store.get(name.format(tmp_path))
    with pytest.raises(NoBlob):
        store.get_range(name.format(tmp_path), 0, 1)
    store.delete([name.format(tmp_path)])
    assert outside.exists()
