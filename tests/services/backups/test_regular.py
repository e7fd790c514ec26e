"""Regular backups: the newest are kept, and the last one is recorded."""

import os
from pathlib import Path

import pytest

from app.clock import DAY_MS
from app.errors import NotConfigured
from app.services.backups.backup import back_up_to
from app.services.backups.last_backup import LastBackup, find_last, note_last
from app.settings.config import Config
from tests.support.backups import MADE

pytestmark = pytest.mark.databases("sqlite")


def test_the_newest_backups_of_a_folder_are_kept(installation: Config, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    for name in ("before-upgrade.backup", "xxl-job-20200101T000000Z.backup.replaced-1"):
        (folder / name).touch()
    made = [back_up_to(installation, folder, keep=2, now_ms=MADE + day * DAY_MS) for day in range(3)]
    paths = [backup.path for backup, _ in made]
    assert paths[0].name == "xxl-job-20260528T202640Z.backup"
    assert [old for _, old in made] == [[], [], paths[:1]]
    assert {path.name for path in folder.iterdir()} == {
        "before-upgrade.backup",
        "xxl-job-20200101T000000Z.backup.replaced-1",
        *(path.name for path in paths[1:]),
    }


def test_the_new_backup_is_kept_whatever_else_is_there(installation: Config, tmp_path: Path) -> None:
    """A clock that was ahead has left a file of 2099; a folder and links have names of backups."""
    names = [f"xxl-job-{year}0101T000000Z.backup" for year in (2001, 2002, 2003, 2099)]
    folder, link, file, ahead = (tmp_path / name for name in names)
    (folder / "inside").mkdir(parents=True)
    link.symlink_to(tmp_path / "elsewhere")
    file.touch()
    ahead.touch()
    backup, old_files = back_up_to(installation, tmp_path, keep=1, now_ms=MADE)
    assert old_files == [link, file, ahead]
    assert set(tmp_path.glob("*.backup")) == {folder, backup.path}


def test_unfinished_backups_of_killed_commands_are_removed(installation: Config, tmp_path: Path) -> None:
    """Each has a name of its own, so that no later one meets it."""
    killed, running, foreign = (
        tmp_path / f".{name}.abcd1234.part"
        for name in ("xxl-job-20260101T000000Z.backup", "xxl-job-20260528T200000Z.backup", "other.backup")
    )
    (killed / "copy").mkdir(parents=True)
    running.touch()
    foreign.touch()
    for path, made_ms in ((killed, MADE - DAY_MS - 1), (running, MADE - DAY_MS // 2), (foreign, 0)):
        os.utime(path, (made_ms / 1000, made_ms / 1000))
    back_up_to(installation, tmp_path, keep=1, now_ms=MADE)
    assert {path.name for path in tmp_path.glob("*.part")} == {running.name, foreign.name}


def test_a_backup_that_fails_removes_none(
    installation: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "xxl-job-20200101T000000Z.backup"
    old.touch()

    def fail(*_arguments: object, **_named: object) -> None:
        raise NotConfigured("the disk is full")

    monkeypatch.setattr("app.services.backups.backup.back_up", fail)
    with pytest.raises(NotConfigured):
        back_up_to(installation, tmp_path, keep=1, now_ms=MADE)
    assert old.exists()


def test_the_last_backup_is_recorded_if_that_is_possible(installation: Config, tmp_path: Path) -> None:
    assert find_last(installation) is None
    for made_ms in (MADE, MADE + 1):
        note_last(installation, LastBackup(made_ms, tmp_path / "one two.backup"))
    assert find_last(installation) == LastBackup(MADE + 1, tmp_path / "one two.backup")
    note_last(Config(home=tmp_path / "absent"), LastBackup(MADE, tmp_path))
    (installation.home / "last_backup").write_text("yesterday")
    assert find_last(installation) is None
