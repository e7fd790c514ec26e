"""Home folder: secrets are generated once, readable by the owner only, shared by all processes."""

import multiprocessing
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from app.database.opening import create_database_file
from app.errors import NotConfigured
from app.services.installation.upgrade import upgrade
from app.settings.config import Config
from app.settings.home import (
    access_tokens,
    end_rotation,
    first_password,
    forget_first_password,
    prepare_home,
    rotate_token,
    secret_file,
    secret_key,
    stored_key,
)
from tests.pipeline.steps import run_concurrently
from tests.settings.token_of_home import read_token

SPAWN = multiprocessing.get_context("spawn")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_generated_once_for_the_owner_only(tmp_path: Path) -> None:
    config = Config(home=tmp_path / "deep" / "home")
    (token,), key, password = access_tokens(config), secret_key(config), first_password(config)
    assert len({token, key, password}) == 3
    assert len(token) == 48
    assert (access_tokens(config), secret_key(config), first_password(config)) == ((token,), key, password)
    files = {path.name: path.read_text() for path in config.home.iterdir()}
    assert files == {
        "access_token": token + "\n",
        "secret_key": key + "\n",
        "admin_password": password + "\n",
    }
    assert {mode(path) for path in config.home.iterdir()} == {0o600}


def test_a_permissive_umask_changes_nothing(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        secret_key(Config(home=tmp_path))
    finally:
        os.umask(before)
    assert mode(tmp_path / "secret_key") == 0o600


def test_two_homes_have_two_tokens(tmp_path: Path) -> None:
    assert access_tokens(Config(home=tmp_path / "a")) != access_tokens(Config(home=tmp_path / "b"))


def test_configured_secrets_win_and_write_nothing(tmp_path: Path) -> None:
    config = Config(
        home=tmp_path / "home",
        access_tokens=("a-token-of-some-length", "another-one"),
        admin_password="a-password",
        secret_key="k" * 32,
    )
    assert secret_key(config) == "k" * 32
    assert access_tokens(config) == ("a-token-of-some-length", "another-one")
    assert first_password(config) == "a-password"
    assert not config.home.exists()


@pytest.mark.parametrize("text", ["short", "", "default_token", "\n"])
def test_a_weak_stored_token_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "access_token").write_text(text)
    with pytest.raises(NotConfigured, match="access_token: expected a token of at least 16 characters"):
        access_tokens(Config(home=tmp_path))


def test_a_short_stored_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("x" * 31)
    with pytest.raises(NotConfigured, match="secret_key: expected a key of at least 32 characters"):
        secret_key(Config(home=tmp_path))


@pytest.mark.parametrize("read", [secret_key, stored_key])
def test_a_key_of_random_bytes_is_refused_in_one_line(tmp_path: Path, read: Callable[[Config], str]) -> None:
    (tmp_path / "secret_key").write_bytes(b"\xff" * 32)
    with pytest.raises(NotConfigured, match="secret_key.* cannot be read: expected UTF-8"):
        read(Config(home=tmp_path))


def test_a_manually_stored_token_is_used(tmp_path: Path) -> None:
    (tmp_path / "access_token").write_text("  a-manually-stored-token\n\n")
    assert access_tokens(Config(home=tmp_path)) == ("a-manually-stored-token",)


def test_a_token_is_replaced_in_two_steps(tmp_path: Path) -> None:
    config = Config(home=tmp_path)
    with pytest.raises(NotConfigured, match="no token yet"):
        rotate_token(config)
    (former,) = access_tokens(config)
    with pytest.raises(NotConfigured, match="one token only"):
        end_rotation(config)
    path = rotate_token(config)
    new, second = access_tokens(config)
    assert (second, new != former, stat.S_IMODE(path.stat().st_mode)) == (former, True, 0o600)
    with pytest.raises(NotConfigured, match="has two tokens"):
        rotate_token(config)
    end_rotation(config)
    assert access_tokens(config) == (new,)
    with pytest.raises(NotConfigured, match="XXL_JOB_ACCESS_TOKEN is set"):
        rotate_token(replace(config, access_tokens=(former,)))
    assert [path.name for path in tmp_path.iterdir()] == ["access_token"]


def test_a_token_behind_a_link_is_replaced_where_it_is(tmp_path: Path) -> None:
    """Only the link would be replaced, and whatever else reads the file would keep the former token."""
    home, shared = tmp_path / "home", tmp_path / "shared"
    home.mkdir()
    shared.write_text("a-manually-stored-token")
    (home / "access_token").symlink_to(shared)
    for command in (rotate_token, end_rotation):
        with pytest.raises(NotConfigured, match=f"is a link: change the token in {shared} by hand"):
            command(Config(home=home))
    assert shared.read_text() == "a-manually-stored-token"
    assert (home / "access_token").is_symlink()


def test_the_first_password_can_be_forgotten(tmp_path: Path) -> None:
    config = Config(home=tmp_path)
    first_password(config)
    forget_first_password(config, "other")
    assert (tmp_path / "admin_password").exists()
    for _ in range(2):
        forget_first_password(config, "admin")
        assert not (tmp_path / "admin_password").exists()


def test_two_processes_starting_together_have_one_token(tmp_path: Path) -> None:
    answers, start = SPAWN.Queue(), SPAWN.Event()
    processes = [SPAWN.Process(target=read_token, args=(str(tmp_path), answers, start)) for _ in range(2)]
    for process in processes:
        process.start()
    start.set()
    tokens = {answers.get(timeout=30) for _ in processes}
    for process in processes:
        process.join()
    assert tokens == {(tmp_path / "access_token").read_text().strip()}
    assert [path.name for path in tmp_path.iterdir()] == ["access_token"], "no temporary file is left"


def test_processes_with_equal_ids_have_one_token(tmp_path: Path) -> None:
    """Containers that share the folder may all be process 1; simulated by threads."""
    for number in range(40):
        path = tmp_path / f"secret-{number}"
        found = run_concurrently(*(partial(secret_file, path, letter * 40) for letter in "abcdef"))
        assert {text for text, _ in found} == {path.read_text().strip()}
        assert sorted(created for _, created in found) == [False] * 5 + [True]
    assert len(list(tmp_path.iterdir())) == 40, "no temporary file is left"


def test_a_home_that_cannot_be_created_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotConfigured, match=r"XXL_JOB_HOME: cannot create the folder"):
        prepare_home(tmp_path / "file" / "home")


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_an_unwritable_home_is_reported_in_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(NotConfigured, match=r"XXL_JOB_HOME: the folder .* is not writable"):
        prepare_home(tmp_path)
    tmp_path.chmod(0o700)


def test_an_unwritable_secret_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        NotConfigured, match="XXL_JOB_HOME: cannot write .*/access_token: No such file or directory"
    ):
        secret_file(tmp_path / "gone" / "access_token", "a-token-of-some-length")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_creates_belongs_to_the_owner_of_the_home(tmp_path: Path) -> None:
    """``sudo duetime db upgrade`` must not leave files that the services cannot read."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 12345, 23456)
    config = Config(home=home, database_url=f"sqlite:///{home}/xxl_job.db")
    create_database_file(config)
    upgrade(config.database_url)
    access_tokens(config)
    secret_key(config)
    owners = {path.name: (path.stat().st_uid, path.stat().st_gid) for path in home.iterdir()}
    assert set(owners) >= {"xxl_job.db", "access_token", "secret_key"}
    assert set(owners.values()) == {(12345, 23456)}, owners
