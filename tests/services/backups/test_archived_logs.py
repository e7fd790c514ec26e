"""Archived logs beside a backup: written and put in place, and nothing else of the file."""

import tarfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from unittest.mock import Mock

import pytest

from app.blobs.blob_store import StoreFull
from app.blobs.folder import Folder
from app.blobs.stores import store_of
from app.domain.archive.packing import pack_lines
from app.errors import NotConfigured
from app.services.backups.archived_logs import logs_of, restore_logs, save_logs
from app.settings.config import Config
from app.settings.log_archive import ArchiveConfig

FOLDER = "2026/07/01/7/1201"


def test_archived_logs_are_saved_and_put_in_place(tmp_path: Path) -> None:
    here, there = Config(home=tmp_path / "here"), Config(home=tmp_path / "there")
    backup = tmp_path / "one.backup"
    assert restore_logs(there, backup) == 0
    chunk, stored = pack_lines(1, ["one", "two"])
    store_of(here).put(f"{FOLDER}/{chunk.name}", stored)
    store_of(here).put("index/5.seg", b"made anew")
    path, count = save_logs(here, backup)
    assert (path, count) == (tmp_path / "one.backup.logs.tar", 1)
    assert restore_logs(there, backup) == 1
    assert [blob.name for blob in store_of(there).list("")] == [f"{FOLDER}/{chunk.name}"]
    assert store_of(there).get(f"{FOLDER}/{chunk.name}") == stored


def test_other_files_and_links_of_the_tar_are_left_out(tmp_path: Path) -> None:
    backup, config = tmp_path / "one.backup", Config(home=tmp_path / "home")
    with tarfile.open(logs_of(backup), "w") as tar:
        for name in ("../../etc/cron.d/x", "/etc/x", "index/5.seg"):
            entry = tarfile.TarInfo(name)
            entry.size = 1
            tar.addfile(entry, BytesIO(b"x"))
        link = tarfile.TarInfo(f"{FOLDER}/1-2-{'0' * 16}.gz")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    assert restore_logs(config, backup) == 0
    assert list(store_of(config).list("")) == []
    logs_of(backup).write_bytes(b"no tar" * 200)
    with pytest.raises(NotConfigured, match="cannot be restored"):
        restore_logs(config, backup)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, backup = Config(home=tmp_path / "home"), tmp_path / "one.backup"
    chunk, stored = pack_lines(1, ["one"])
    store_of(config).put(f"{FOLDER}/{chunk.name}", stored)
    save_logs(config, backup)
    monkeypatch.setattr(Folder, "put", Mock(side_effect=StoreFull("no room")))
    with pytest.raises(NotConfigured, match="cannot be restored: no room"):
        restore_logs(config, backup)


def test_a_bucket_is_copied_with_other_tools(tmp_path: Path) -> None:
    config = replace(Config(home=tmp_path), archive=ArchiveConfig(url="s3://logs"))
    with pytest.raises(NotConfigured, match="in a bucket"):
        save_logs(config, tmp_path / "one.backup")
