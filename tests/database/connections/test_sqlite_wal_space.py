"""WAL space: on a short disk the WAL of SQLite is emptied before it takes the room that the file needs."""

import os
from pathlib import Path

import pytest
from sqlalchemy import text

from app.database.connections.sqlite_wal_space import LOOK_S, PLENTY, WalSpace
from app.database.engine import read_scope, session_scope
from app.database.urls import sqlite_file

pytestmark = pytest.mark.databases("sqlite")

MB = 1024 * 1024
ROW = 50_000


class Disk:
    """What a disk reports as free."""

    def __init__(self, free: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free, self.looks = free, 0
        monkeypatch.setattr(os, "statvfs", self._statvfs)

    def _statvfs(self, _path: object) -> os.statvfs_result:
        self.looks += 1
        return os.statvfs_result((1, 1, self.free, self.free, self.free, 0, 0, 0, 0, 255))


@pytest.fixture
def wal(database: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The WAL of the test's database, which has a table for large rows, on a disk looked at each time."""
    monkeypatch.setattr("app.database.connections.sqlite_wal_space.LOOK_S", 0.0)
    with session_scope() as session:
        session.execute(text("CREATE TABLE large (content BLOB)"))
    return Path(f"{sqlite_file(database)}-wal")


def add_rows(count: int) -> None:
    for _ in range(count):
        with session_scope() as session:
            session.execute(text("INSERT INTO large VALUES (zeroblob(:size))"), {"size": ROW})


def test_the_wal_leaves_half_of_the_free_space_of_a_short_disk(
    wal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Disk(2 * MB, monkeypatch)
    sizes = []
    for _ in range(100):
        add_rows(1)
        sizes.append(wal.stat().st_size)
    assert MB / 2 < max(sizes) < MB + 2 * ROW


def test_the_wal_gives_back_its_size_when_the_disk_gets_short(
    wal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(8 * MB, monkeypatch)
    add_rows(50)
    assert wal.stat().st_size > 2 * MB
    disk.free = MB
    add_rows(1)
    assert wal.stat().st_size < 2 * ROW


def test_a_reader_postpones_it_and_holds_up_no_writer(wal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Disk(0, monkeypatch)
    with read_scope() as session:
        session.execute(text("SELECT count(*) FROM large")).all()
        add_rows(20)
        assert wal.stat().st_size > 20 * ROW
    add_rows(1)
    assert wal.stat().st_size < 2 * ROW


def test_a_disk_with_plenty_of_space_is_looked_at_once_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.db-wal").write_bytes(b"x")
    disk = Disk(PLENTY + 1, monkeypatch)
    space = WalSpace(str(tmp_path / "x.db"))
    assert not any(space.is_short(100.0 + LOOK_S * number / 10) for number in range(20))
    assert disk.looks == 2
    disk.free = 0
    assert [space.is_short(100.0 + LOOK_S * 2)] * 2 == [True, True]
    assert disk.looks == 3


def test_a_database_in_memory_has_no_wal() -> None:
    assert not WalSpace("").is_short(1.0)
