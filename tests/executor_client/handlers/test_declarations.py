"""Terms of ``@job``: what is declared, and what is refused at registration."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from executor_client.handlers import terms
from executor_client.handlers.declarations import Declaration, declare
from executor_client.handlers.registry import HandlerRegistry
from executor_client.wire.errors import HandlerConflict
from tests.support.truth_table import truth_table


@dataclass(frozen=True)
class Span:
    first: date
    limit: int = 3


def members(**given: Any) -> Mapping[str, Any]:
    declared = declare("closeOrders", given)
    assert declared is not None
    return declared.members


def problem(handler: str = "closeOrders", **given: Any) -> str:
    with pytest.raises(HandlerConflict) as caught:
        declare(handler, given)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"job handler {handler!r}: ")


@truth_table(
    "given, expected",
    [
        (
            {"cron": " 0 0/5 * * * ? ", "timezone": "Europe/Berlin"},
            {"schedule_type": "CRON", "schedule": "0 0/5 * * * ?", "time_zone": "Europe/Berlin"},
        ),
        ({"every": 90}, {"schedule_type": "FIX_RATE", "schedule": "90"}),
        ({"every": timedelta(minutes=2)}, {"schedule_type": "FIX_RATE", "schedule": "120"}),
        ({"fixed_delay": 5}, {"schedule_type": "FIX_DELAY", "schedule": "5"}),
        (
            {"retry": 3, "retry_interval": timedelta(seconds=30), "retry_backoff": 1.5},
            {"retry_count": 3, "retry_interval_s": 30, "retry_backoff_percent": 150},
        ),
        ({"timeout": 0, "enabled": False}, {"timeout_s": 0, "enabled": False}),
        (
            {"route": "FAILOVER", "block": "COVER_EARLY", "misfire": "FIRE_ONCE_NOW", "delivery": "auto"},
            {
                "route_strategy": "FAILOVER",
                "block_strategy": "COVER_EARLY",
                "misfire_strategy": "FIRE_ONCE_NOW",
                "delivery": "auto",
            },
        ),
        (
            {"misfire": "RUN_ALL", "misfire_max": 24, "misfire_max_age": timedelta(hours=12)},
            {"misfire_strategy": "RUN_ALL", "misfire_max": 24, "misfire_max_age_s": 43_200},
        ),
        (
            {"children": ("a", "other/b"), "tags": {"y", "x"}},
            {"children": ["a", "other/b"], "tags": ["x", "y"]},
        ),
        (
            {
                "promises": ({"kind": "starts_within", "s": 300}, {"kind": "finishes_by", "at": "06:00"}),
                "escalation": {"channel": "On call", "after_minutes": 15},
            },
            {
                "promises": [{"kind": "starts_within", "s": 300}, {"kind": "finishes_by", "at": "06:00"}],
                "escalation": {"channel": "On call", "after_minutes": 15},
            },
        ),
        (
            {
                "max_running": 1,
                "when_full": "newest",
                "priority": 9,
                "max_wait": timedelta(minutes=5),
                "limits": ["mail", {"limit": "database", "weight": 2}],
                "limit_key": "${param.customer}",
            },
            {
                "max_running": 1,
                "when_full": "newest",
                "priority": 9,
                "max_wait_s": 300,
                "limits": [{"limit": "mail"}, {"limit": "database", "weight": 2}],
                "limit_key": "${param.customer}",
            },
        ),
        (kept := {"log_archive": "failed", "log_days": 7, "run_days": 0}, kept),
        ({"calendar": "cn"}, {"calendar": {"name": "cn"}}),
        ({"calendar": {"name": "cn", "nth": -1}}, {"calendar": {"name": "cn", "nth": -1}}),
        ({"alarm_email": ["a@x", "b@x"], "owner": " ann "}, {"alarm_email": "a@x,b@x", "owner": "ann"}),
        ({"param": " as is "}, {"param": " as is "}),
        ({"param": Span(date(2026, 1, 2))}, {"param": '{"first":"2026-01-02","limit":3}'}),
        ({"param": {"sum": Decimal("1.10"), "名": None}}, {"param": '{"sum":"1.10","名":null}'}),
        (
            {"not_before": datetime(2026, 7, 1), "timezone": "Europe/Berlin"},
            {"not_before": "2026-06-30T22:00:00.000+00:00", "time_zone": "Europe/Berlin"},
        ),
        (
            {"not_after": datetime(2026, 7, 1, tzinfo=timezone.utc)},
            {"not_after": "2026-07-01T00:00:00.000+00:00"},
        ),
    ],
)
def test_terms_become_members_of_a_job(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert members(**given) == expected


def test_nothing_is_declared_without_a_term() -> None:
    assert declare("any name: 任务", {}) is None
    assert declare("any name", {"cron": None, "owner": None}) is None


@truth_table(
    "given, line",
    [
        ({"crn": "x"}, "there is no argument crn; did you mean cron?"),
        ({"cron": "* *"}, "cron must be a cron expression of 5 (Unix) or 6 to 7 fields (Quartz)"),
        ({"cron": "* * * * *", "every": 1}, "cron and every cannot be used together; a job has one schedule"),
        ({"every": 0}, "every must be a number of seconds or a timedelta, whole and at least 1, not 0"),
        ({"every": timedelta(seconds=1.5)}, "not 0:00:01.500000"),
        ({"retry": True}, "retry must be a whole number from 0 to 9999, not True"),
        ({"retry": "3"}, "not '3'"),
        ({"retry_backoff": 0.5}, "retry_backoff must be a number from 1 to 10"),
        ({"retry_backoff": float("nan")}, "retry_backoff must be a number from 1 to 10"),
        ({"route": "first"}, "route cannot be 'first': did you mean 'FIRST'?"),
        ({"delivery": "AT_MOST_ONCE"}, "delivery cannot be 'AT_MOST_ONCE': did you mean 'at_most_once'?"),
        ({"block": 7}, "block cannot be 7: one of SERIAL_EXECUTION, DISCARD_LATER, COVER_EARLY"),
        ({"timezone": "Europe/Berln"}, "did you mean Europe/Berlin?"),
        ({"owner": " "}, "owner must be a non-blank string, not ' '"),
        ({"tags": "a"}, "tags must be a list of strings such as ['a', 'b'], not 'a'"),
        ({"enabled": 1}, "enabled must be True or False, not 1"),
        ({"promises": {"kind": "finishes_by"}}, "promises must be a list of mappings"),
        ({"promises": ["finishes_by"]}, "promises must be a mapping of names to values"),
        ({"promises": [{"at": object()}]}, "promises cannot be sent as JSON: object is not a JSON value"),
        ({"escalation": "On call"}, "escalation must be a mapping of names to values, not 'On call'"),
        ({"limits": "mail"}, "limits must be a list of names such as ['reporting database'], not 'mail'"),
        ({"when_full": "queue"}, "when_full cannot be 'queue': one of wait, skip, newest, replace"),
        ({"priority": 10}, "priority must be a whole number from 1 to 9, not 10"),
        ({"param": object()}, "param cannot be sent as JSON: object is not a JSON value"),
        ({"not_after": date(2026, 1, 1)}, "not_after must be a datetime"),
        ({"not_after": datetime(2026, 1, 1)}, "not_after needs a time zone: declare timezone=…"),
    ],
)
def test_a_wrong_term_is_refused_in_one_line(given: dict[str, Any], line: str) -> None:
    assert line in problem(**given)


def test_the_name_of_a_declared_job_is_a_key() -> None:
    assert "because the name is its key" in problem("close orders", owner="ann")


def test_zones_are_not_checked_without_zone_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms, "zone_of", lambda _name: None)
    assert members(timezone="Mars/Base") == {"time_zone": "Mars/Base"}
    assert "needs a time zone" in problem(timezone="Mars/Base", not_before=datetime(2026, 1, 1))


def test_handlers_keep_their_declarations() -> None:
    registry = HandlerRegistry()

    @registry.job("plain")
    def plain() -> None: ...

    @registry.job("nightly", cron="0 30 2 * * ?", not_before=datetime(2026, 1, 1, tzinfo=timezone.utc))
    def nightly() -> None: ...

    found = [registry.find(name) for name in ("plain", "nightly")]
    declared = [each.declaration for each in found if each is not None]
    assert (declared[0], declared[1] and declared[1].terms["cron"]) == (None, "0 30 2 * * ?")
    assert hash(found[1]) is not None


def test_a_declared_parameter_fits_the_function() -> None:
    registry = HandlerRegistry()

    def sync(day: date, limit: int = 100) -> None: ...

    registry.job("sync", param={"day": date(2026, 1, 2)})(sync)
    with pytest.raises(HandlerConflict, match="job handler 'sync': param .*: .*limit"):
        registry.job("sync", param={"day": date(2026, 1, 2), "limit": "many"})(sync)


def test_a_declared_parameter_may_hold_placeholders() -> None:
    registry = HandlerRegistry()

    @registry.job("sync", param={"day": "${time-1d:yyyy-MM-dd}", "limit": 100})
    def sync(day: date, limit: int = 100) -> None: ...

    handler = registry.find("sync")
    assert handler is not None
    assert handler.declaration is not None
    assert handler.declaration.members["param"] == '{"day":"${time-1d:yyyy-MM-dd}","limit":100}'


def test_methods_keep_their_declarations() -> None:
    registry = HandlerRegistry()

    class Reports:
        def nightly(self) -> None: ...

    Reports.nightly.__qualname__ = "Reports.nightly"
    registry.job("nightly", owner="ann")(Reports.nightly)
    registry.register(Reports())
    found = registry.find("nightly")
    assert found is not None
    assert found.declaration == Declaration({"owner": "ann"})
