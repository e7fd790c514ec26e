"""Doctor: what it finds on the host, without a database."""

import errno
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.clock import DAY_MS
from app.database.engine import bind_for_reading
from app.domain.text.texts import counted
from app.errors import NotConfigured
from app.services.backups.last_backup import LastBackup, note_last
from app.services.doctor import host
from app.services.doctor.findings import Finding, Level, name_list
from app.settings.config import Config, MailConfig
from tests.support.factories import T0

GIB = 1024**3


def bad(findings: Iterable[Finding]) -> list[str]:
    """Return the texts of what needs something; each has its advice."""
    found = [finding for finding in findings if finding.level is not Level.OK]
    assert all(finding.advice for finding in found)
    return [finding.text for finding in found]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder as the services leave it."""
    home = tmp_path / "home"
    home.mkdir(0o700)
    for name in ("access_token", "secret_key", "xxl_job.db"):
        (home / name).touch(0o600)
    (home / "access_token").write_text("a-token-0123456789\n")
    return home


def config_of(home: Path, **changes: object) -> Config:
    return Config(home=home, database_url=f"sqlite:///{home}/xxl_job.db", **changes)  # type: ignore[arg-type]


def test_an_orderly_host(home: Path) -> None:
    config, env_file = config_of(home), home.parent / "env"
    env_file.touch(0o640)
    checks = (
        host.check_settings(config),
        host.check_tokens(config),
        host.check_files(config, env_file),
        host.check_disk(config),
    )
    findings = [finding for check in checks for finding in check]
    assert bad(findings) == []
    assert {finding.check for finding in findings} == {"settings", "token", "files", "disk"}


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"host": "0.0.0.0", "allowed_hosts": ("jobs",)}, "without TLS"),
        ({"host": "0.0.0.0", "proxy_count": 1, "public_url": "https://jobs"}, "any host name"),
        ({"mail": MailConfig(host="mail", sender="me")}, "links in alarms"),
    ],
)
def test_settings_that_leave_something_open(settings: dict[str, object], text: str, home: Path) -> None:
    (found,) = bad(host.check_settings(config_of(home, **settings)))
    assert text in found


def test_access_tokens(home: Path) -> None:
    assert "two access tokens" in bad(host.check_tokens(config_of(home, access_tokens=("a", "b"))))[0]
    assert "a token that is not valid" in bad(host.check_tokens(config_of(home, access_tokens=("a",))))[0]
    (home / "access_token").write_text("a,b\n")
    assert "two access tokens" in bad(host.check_tokens(config_of(home)))[0]
    assert len(bad(host.check_tokens(config_of(home, access_tokens=("b", "a"))))) == 1
    (home / "access_token").unlink()
    assert "there is no access token" in bad(host.check_tokens(config_of(home)))[0]
    assert bad(host.check_tokens(config_of(home, access_tokens=("a",)))) == []


def test_the_age_of_the_last_backup(home: Path) -> None:
    config = config_of(home)
    assert bad(host.check_backup(config, now_ms=T0)) == ["none has been made"]
    server = replace(config, database_url="postgresql+psycopg://u@127.0.0.1/x")
    assert list(host.check_backup(server, now_ms=T0)) == []
    note_last(config, LastBackup(T0, Path("/var/backups/one.backup")))
    assert bad(host.check_backup(config, now_ms=T0 + 2 * DAY_MS)) == []
    (old,) = bad(host.check_backup(server, now_ms=T0 + 2 * DAY_MS + 1))
    assert old == "the last one is 48 hours old: /var/backups/one.backup"


def test_files_that_others_can_read(home: Path) -> None:
    env_file = home.parent / "env"
    env_file.touch()
    env_file.chmod(0o644)
    (home / "secret_key").chmod(0o644)
    assert bad(host.check_files(config_of(home), env_file)) == [f"{env_file} is readable by every user"]
    home.chmod(0o755)
    assert bad(host.check_files(config_of(home), None)) == [
        f"{home} is open to other users",
        f"{home}/secret_key is readable by other users",
    ]


def test_a_database_outside_the_home_that_others_can_read(home: Path) -> None:
    database = home.parent / "data" / "xxl_job.db"
    database.parent.mkdir(mode=0o755)
    database.touch(0o644)
    config = config_of(home)
    outside = replace(config, database_url=f"sqlite:///{database}")
    assert bad(host.check_files(outside, None)) == [f"{database} is readable by other users"]
    database.parent.chmod(0o700)
    assert bad(host.check_files(outside, None)) == []


def test_files_that_are_missing_or_left_over(home: Path) -> None:
    (home / "secret_key").unlink()
    (key,) = bad(host.check_files(config_of(home), None))
    assert "there is no application key" in key
    assert bad(host.check_files(config_of(home, secret_key="k" * 32), None)) == []
    assert "is absent" in bad(host.check_files(config_of(home / "other"), None))[0]


def test_files_of_another_user(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lstat = Path.lstat
    monkeypatch.setattr(Path, "lstat", lambda path: SimpleNamespace(st_uid=lstat(path).st_uid + 1))
    (found,) = bad(host.check_files(config_of(home), None))
    assert "files of another user than the folder: access_token, secret_key, xxl_job.db" in found


def test_a_home_that_cannot_be_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed, found = Path.iterdir, Path.stat

    def refuse(path: Path) -> None:
        if home in (path, *path.parents):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    def iterdir(path: Path) -> Iterator[Path]:
        refuse(path)
        return listed(path)

    def stat(path: Path, **options: bool) -> os.stat_result:
        refuse(path)
        return found(path, **options)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    monkeypatch.setattr(Path, "stat", stat)
    config = config_of(home)
    assert bad(host.check_files(config, None)) == [f"{home} cannot be read: Permission denied"]
    assert list(host.check_disk(config)) == []
    with pytest.raises(NotConfigured, match="cannot be opened: Permission denied"):
        bind_for_reading(config)


@pytest.mark.parametrize(
    ("free_gib", "level"), [(50, Level.OK), (3, Level.OK), (1, Level.WARNING), (0.1, Level.PROBLEM)]
)
def test_free_space(free_gib: float, level: Level, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(free=int(free_gib * GIB), total=100 * GIB)
    monkeypatch.setattr("shutil.disk_usage", lambda _folder: usage)
    (found,) = host.check_disk(config_of(home))
    assert found.level is level


def test_lists_and_counts() -> None:
    assert name_list(["a", "b"]) == "a, b"
    assert name_list(list("abcdefg")) == "a, b, c, d, e and 2 more"
    assert (counted(1, "job"), counted(2, "job")) == ("1 job", "2 jobs")
