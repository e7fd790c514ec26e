"""Backup files of another's making: refused with one line, whatever is in them."""

import json
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from app.errors import NotConfigured
from app.services.backups import archive
from app.services.backups.manifest import Manifest, read_manifest
from app.settings.config import Config
from tests.support.backups import MADE, make_backup, restore
from tests.support.truth_table import truth_table

DATABASE, SECRET = "database.sqlite", f"{archive.SECRETS}/secret_key"
#: headers of a long name, each of which tells of the next
LONG_NAMES = 3_000
MANIFEST = Manifest(
    program="0.1.0",
    schema="0001_initial",
    database="sqlite",
    namespace="",
    made_ms=MADE,
    verified=True,
    rows={"xxl_job_log": 1},
    secrets={},
    key_fingerprint="",
    files={DATABASE: sha256(b"x").hexdigest()},
)
Entry = tuple[tarfile.TarInfo, bytes]


def entry(name: str, content: bytes = b"", *, kind: bytes = tarfile.REGTYPE, link: str = "") -> Entry:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = len(content), kind, link
    return info, content


def write(path: Path, entries: Sequence[Entry], manifest: Manifest = MANIFEST) -> Path:
    """Write an archive with a manifest and these entries."""
    with tarfile.open(path, "w:gz") as file:
        for info, content in (entry(archive.MANIFEST, manifest.to_json()), *entries):
            file.addfile(info, BytesIO(content))
    return path


HARD, SYMBOLIC, FOLDER, FIFO = tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE


@truth_table(
    "entries, reason",
    [
        ([entry(DATABASE, kind=SYMBOLIC, link="none")], "database.sqlite is not a plain file"),
        ([entry(DATABASE, kind=HARD, link="none")], "database.sqlite is not a plain file"),
        ([entry(DATABASE, kind=HARD, link=archive.MANIFEST)], "database.sqlite is not a plain file"),
        ([entry(DATABASE, kind=FOLDER)], "database.sqlite is not a plain file"),
        ([entry(DATABASE, kind=FIFO)], "database.sqlite is not a plain file"),
        ([entry("a", kind=SYMBOLIC, link="b"), entry("b", kind=SYMBOLIC, link="a")], "a is not a plain file"),
        ([entry(f"{n}", b"name\0", kind=tarfile.GNUTYPE_LONGNAME) for n in range(LONG_NAMES)], "recursion"),
        ([entry(f"{n}") for n in range(archive.ENTRIES_MAX)], "more than 100 entries"),
        ([entry("other", b"x")], "database.sqlite differs from its checksum"),
    ],
)
def test_an_entry_that_is_not_a_plain_file_is_refused(
    entries: list[Entry], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(NotConfigured, match=reason):
        archive.check_archive(write(tmp_path / "hostile.backup", entries))


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_large_header_of_an_entry_is_not_read(kind: bytes, tmp_path: Path) -> None:
    path = write(tmp_path / "hostile.backup", [entry("header", bytes(archive.SMALL_MAX + 1), kind=kind)])
    with pytest.raises(NotConfigured, match="header of an entry is too large"):
        archive.check_archive(path)


def test_a_manifest_that_is_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hostile.backup"
    with tarfile.open(path, "w:gz") as file:
        file.addfile(entry(archive.MANIFEST, kind=SYMBOLIC, link="none")[0])
    with pytest.raises(NotConfigured, match="manifest.json is not a plain file"):
        archive.check_archive(path)


def test_a_secret_that_is_not_text_is_refused(tmp_path: Path) -> None:
    manifest = replace(MANIFEST, files={SECRET: sha256(b"\xff").hexdigest()})
    path = write(tmp_path / "hostile.backup", [entry(SECRET, b"\xff")], manifest)
    with pytest.raises(NotConfigured, match="damaged: .* can't decode byte 0xff"):
        archive.read_secrets(path, archive.check_archive(path))


def altered(**values: Any) -> Callable[[], bytes]:
    return lambda: json.dumps(asdict(MANIFEST) | values).encode()


@truth_table(
    "stored",
    [
        altered(made_ms="now"),
        altered(made_ms=True),
        altered(made_ms=-1),
        altered(made_ms=10**30),
        altered(rows={"xxl_job_log": "1"}),
        altered(rows=["xxl_job_log"]),
        altered(files={DATABASE: 1}),
        altered(files=[DATABASE]),
        altered(schema=1),
        altered(code="\ud800"),
        altered(format=[]),
        lambda: b'{"format": 3, "rows": ' + b"[" * 100_000,
    ],
)
def test_a_manifest_with_values_of_other_types_cannot_be_read(stored: Callable[[], bytes]) -> None:
    with pytest.raises(NotConfigured, match="its manifest cannot be read"):
        read_manifest(stored())


def test_the_manifest_of_the_other_tests_can_be_read() -> None:
    assert read_manifest(MANIFEST.to_json()) == MANIFEST


@pytest.mark.databases("sqlite")
def test_a_database_that_is_not_in_the_manifest_is_refused(installation: Config, tmp_path: Path) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    archive.extract(made.path, made.manifest, DATABASE, copy := tmp_path / DATABASE)
    manifest = replace(made.manifest, files={}, format=2, secrets={}, key_fingerprint="")
    path = write(tmp_path / "hostile.backup", [entry(DATABASE, copy.read_bytes())], manifest)
    elsewhere = replace(
        installation, home=tmp_path / "elsewhere", database_url=f"sqlite:///{tmp_path}/other.db"
    )
    with pytest.raises(NotConfigured, match="has no database.sqlite that its manifest lists"):
        restore(elsewhere, path)
    assert not (tmp_path / "other.db").exists()
