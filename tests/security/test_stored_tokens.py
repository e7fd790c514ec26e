"""Tokens of groups in the database: a dump gives none away, and all nodes must be able to read them."""

import re
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import product

import pytest
from sqlalchemy import inspect, text

from app.api.tokens import TokenBook
from app.clock import now_ms
from app.database.engine import bind_engine, read_scope, session_scope
from app.domain.enums import NodeKind
from app.errors import NotConfigured
from app.models.group import Group
from app.models.node import Node
from app.services.installation import nodes, sealed_tokens, startup
from app.settings.config import Config
from app.settings.home import secret_key
from app.settings.sealing import PREFIX, Sealer
from app.store.executors import groups
from tests.support.factories import make_group, only_row
from tests.support.plan import every_database

OWN, FORMER, GLOBAL = "the-token-of-the-group", "the-token-before-that", "the-token-of-all-others"
OTHER_KEY = "another-application-key-0123456789"


@pytest.fixture
def node(database: str, config: Config) -> Iterator[Config]:
    """Settings of the first node; the engine is bound to them again after the test."""
    own = replace(config, access_tokens=(GLOBAL,), node_name="one")
    bind_engine(own)
    yield own
    bind_engine(own)


def dump() -> str:
    """Return all values of the database as text."""
    with read_scope() as session:
        tables = inspect(session.connection()).get_table_names()
        rows = [row for table in tables for row in session.execute(text(f"SELECT * FROM {table}"))]
    return repr(rows)


def store_plain(**columns: str) -> None:
    """Store tokens as an older version did."""
    with session_scope() as session:
        for column, token in columns.items():
            session.execute(text(f"UPDATE xxl_job_group SET {column} = :token"), {"token": token})


def other_node(node: Config, **settings: str) -> Config:
    """Bind the engine to the settings of a second node with a home folder of its own."""
    second = replace(node, home=node.home.parent / "second", node_name="two", **settings)
    bind_engine(second)
    return second


@every_database
def test_a_dump_contains_no_token_and_no_fingerprint_that_can_be_guessed(node: Config) -> None:
    make_group(access_token=OWN, former_token=FORMER)
    nodes.start(node, NodeKind.CONSOLE, now_ms=now_ms())
    dumped = dump()
    for token, prefix in product((OWN, FORMER, GLOBAL), ("", "xxl-job-token:")):
        assert token not in dumped
        assert sha256((prefix + token).encode()).hexdigest()[:16] not in dumped
    assert secret_key(node) not in dumped
    assert dumped.count(PREFIX) == 2
    assert only_row(Group).tokens == (OWN, FORMER)


@every_database
def test_plain_tokens_of_an_older_version_are_encrypted_at_the_start(node: Config) -> None:
    make_group()
    store_plain(access_token=OWN, former_token=FORMER)
    assert only_row(Group).tokens == (OWN, FORMER), "valid until then"
    startup.prepare(node)
    sealed = dump()
    assert OWN not in sealed
    assert FORMER not in sealed
    assert only_row(Group).tokens == (OWN, FORMER)
    startup.prepare(node)
    assert re.findall(rf"{PREFIX}[\w=-]+", dump()) == re.findall(rf"{PREFIX}[\w=-]+", sealed), "once"


@every_database
def test_a_token_changed_meanwhile_is_not_overwritten(node: Config) -> None:
    make_group()
    store_plain(access_token=OWN)
    with read_scope() as session:
        (read,) = groups.find_stored_tokens(session)
    store_plain(access_token="set-by-an-administrator")
    with session_scope() as session:
        assert not groups.replace_stored_token(session, read, "x")
    assert only_row(Group).access_token == "set-by-an-administrator"


@every_database
def test_fingerprints_of_an_older_version_are_deleted(node: Config) -> None:
    with session_scope() as session:
        old = {"epoch": 1, "started_ms": 1, "heartbeat_ms": now_ms(), "version": "0.9"}
        session.add(Node(name="old", kind="workers", token_fingerprint="0123456789abcdef", **old))
    startup.prepare(node)  # not refused: it cannot be compared
    assert only_row(Node, name="old").token_fingerprint == ""


def test_the_tokens_of_thousands_of_groups_are_unsealed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    unsealed: list[str] = []
    unseal = Sealer._unseal

    def note(sealer: Sealer, stored: str) -> str:
        unsealed.append(stored)
        return unseal(sealer, stored)

    monkeypatch.setattr(Sealer, "_unseal", note)
    sealer = Sealer(lambda: OTHER_KEY)
    tokens = [f"the-token-of-group-{number}" for number in range(3_000)]
    stored = [sealer.seal(token) for token in tokens]
    for _reading in range(2):
        assert [sealer.unseal(each) for each in stored] == tokens
    assert unsealed == stored


def test_a_node_with_another_key_than_a_live_one_refuses_to_start(node: Config) -> None:
    nodes.start(node, NodeKind.CONSOLE, now_ms=now_ms())
    second = other_node(node)
    with pytest.raises(NotConfigured) as caught:
        nodes.start(second, NodeKind.WORKERS, now_ms=now_ms())
    message = str(caught.value)
    assert message.startswith(f"{second.home}/secret_key: the node one (console) on the same database")
    assert "copy its file secret_key" in message
    assert "XXL_JOB_SECRET_KEY" in message
    assert secret_key(node) not in message
    second = other_node(node, secret_key=secret_key(node))
    nodes.start(second, NodeKind.WORKERS, now_ms=now_ms())
    with pytest.raises(NotConfigured, match="uses another access token"):
        nodes.start(
            replace(second, node_name="three", access_tokens=(OWN,)), NodeKind.WORKERS, now_ms=now_ms()
        )


def test_a_node_that_cannot_read_a_token_refuses_to_start(node: Config) -> None:
    make_group(app_name="billing", access_token=OWN)
    second = other_node(node, secret_key=OTHER_KEY)
    with pytest.raises(NotConfigured) as caught:
        startup.prepare(second)
    message = str(caught.value)
    assert message.startswith(
        "XXL_JOB_SECRET_KEY: the access token of the executor group billing was encrypted"
    )
    assert OTHER_KEY not in message
    assert "\n" not in message


def test_a_token_that_cannot_be_read_opens_nothing(node: Config, caplog: pytest.LogCaptureFixture) -> None:
    group = make_group(app_name="billing", access_token=OWN)
    other_node(node, secret_key=OTHER_KEY)
    book = TokenBook((GLOBAL,))
    for token in (OWN, GLOBAL, ""):
        assert not book.accepts(token, "billing"), "not even the global one"
    scope = book.find_scope(GLOBAL)
    assert scope is not None
    assert not scope.covers(group.id)
    assert OWN not in caplog.text


def test_an_application_key_seals_each_time_differently(node: Config) -> None:
    make_group(app_name="one", access_token=OWN)
    make_group(app_name="two", access_token=OWN)
    with read_scope() as session:
        first, second = groups.find_stored_tokens(session)
    assert first.text != second.text
    sealed_tokens.check(node)
