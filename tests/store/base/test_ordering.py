"""Sorted lists: the same order on every database, empty values last, each row on exactly one page."""

from collections.abc import Callable
from typing import Any

import pytest

from app.clock import DAY_MS
from app.database.engine import read_scope
from app.domain.lists.orders import Order
from app.models.audit import AuditEntry
from app.models.job import AFTER_THE_CURRENT_RUN
from app.models.last_seen import LastSeen
from app.models.registry import Registration
from app.models.user import User
from app.services.report.failing import find_failing
from app.store.accounts import audit, users
from app.store.accounts.audit import AuditFilter
from app.store.accounts.users import UserFilter
from app.store.base.paging import Page
from app.store.executors import listing as group_lists
from app.store.executors.listing import GroupFilter
from app.store.jobs import last_runs
from app.store.jobs import listing as job_lists
from app.store.jobs.filtering import JobFilter
from app.store.runs import listing as log_lists
from app.store.runs.listing import OLDEST_FIRST, LogFilter, LogStatus
from tests.support.factories import T0, make_group, make_job, make_log, save

#: function that reads sorted rows of a list: order, start, length
Read = Callable[[Order, int, int], Page[Any]]


def jobs(order: Order, start: int = 0, length: int = 100) -> Page[Any]:
    with read_scope() as session:
        return job_lists.list_jobs(
            session, JobFilter(order=order), group_ids=None, start=start, length=length
        )


def groups(order: Order, start: int = 0, length: int = 100) -> Page[Any]:
    with read_scope() as session:
        return group_lists.list_groups(
            session, GroupFilter(order=order), group_ids=None, start=start, length=length
        )


def user_rows(order: Order, start: int = 0, length: int = 100) -> Page[Any]:
    with read_scope() as session:
        return users.list_users(session, UserFilter(order=order), start=start, length=length)


def audit_rows(order: Order, start: int = 0, length: int = 100) -> Page[Any]:
    with read_scope() as session:
        return audit.list_entries(session, AuditFilter(order=order), start=start, length=length)


def logs(order: Order, start: int = 0, length: int = 100, **expected: Any) -> Page[Any]:
    with read_scope() as session:
        return log_lists.list_logs(
            session, LogFilter(order=order, **expected), group_ids=None, start=start, length=length
        )


def check(read: Read, named: dict[int, str], orders: dict[str, tuple[str, str]]) -> None:
    """Check both directions of each column, as a whole and in pages of two; letters name the rows."""
    for column, directions in orders.items():
        for descending, expected in zip((False, True), directions, strict=True):
            order = Order(column, descending)
            assert "".join(named[row.id] for row in read(order, 0, 100).rows) == expected, order
            pages = [read(order, start, 2) for start in range(0, len(named), 2)]
            assert "".join(named[row.id] for page in pages for row in page.rows) == expected, order
            assert {page.total for page in pages} == {len(named)}


def test_jobs_are_sorted_by_each_column(database: str) -> None:
    zoo, ark = make_group(title="zoo").id, make_group(title="Ark").id
    on = {"trigger_status": 1, "schedule_type": "FIX_RATE"}
    rows = {
        "a": {
            "job_group": zoo,
            "job_desc": "beta",
            "author": "",
            "trigger_next_time": T0 + 9_000,
        },  # stopped: no next time
        "b": {"job_group": ark, "job_desc": "Alpha", "author": "Zoe", "trigger_next_time": T0 + 2_000, **on},
        "c": {"job_group": zoo, "job_desc": "gamma", "author": "ann", "trigger_next_time": T0 + 1_000, **on},
        "d": {
            "job_group": ark,
            "job_desc": "alpha",
            "author": None,
            "trigger_next_time": AFTER_THE_CURRENT_RUN,
            **on,
        },
        "e": {
            "job_group": 4711,
            "job_desc": "Beta",
            "author": "Ann",
            "trigger_next_time": 0,
            **on,
        },  # its executor group was deleted
        "f": {
            "job_group": zoo,
            "job_desc": "delta",
            "glue_type": "GLUE_SHELL",
            "executor_handler": None,
            "trigger_next_time": T0,
            **on,
        },
    }
    made = {
        letter: make_job(**{"executor_handler": f"handler {letter}", **row}) for letter, row in rows.items()
    }
    for letter, ran_ms in (("c", T0), ("a", T0 + 5_000), ("a", T0 - 5_000), ("f", T0 + 1_000)):
        make_log(made[letter], trigger_time=ran_ms)
    check(
        jobs,
        {job.id: letter for letter, job in made.items()},
        {
            "id": ("abcdef", "fedcba"),
            "desc": ("bdaefc", "cfeadb"),
            "executor": ("bdacfe", "fcadbe"),
            "mode": ("abcdef", "fedcba"),
            "owner": ("fcebad", "becfda"),
            "status": ("abcdef", "fedcba"),
            "next": ("fcbdae", "bcfdea"),
            "last": ("cfabde", "afcedb"),
            "unknown": ("fedcba", "fedcba"),
        },
    )


def test_a_sorted_list_of_jobs_keeps_its_filters_and_groups(database: str) -> None:
    visible, foreign = make_group().id, make_group().id
    expected = [make_job(job_group=visible, author="ann", job_desc=text).id for text in ("b", "c", "a")]
    for row in ({"job_group": foreign, "author": "ann"}, {"job_group": visible, "author": "bob"}):
        make_job(**row)
    job_filter = JobFilter(author="ann", order=Order("desc"))
    with read_scope() as session:
        page = job_lists.list_jobs(session, job_filter, group_ids=[visible], start=0, length=2)
        assert ([job.id for job in page.rows], page.total) == ([expected[2], expected[0]], 3)


def test_executors_are_sorted_by_each_column(database: str) -> None:
    rows = {
        "a": {"app_name": "app-b", "title": "Zoo", "address_list": "http://a/,http://b/,http://c/"},
        "b": {"app_name": "app-a", "title": "ark", "address_list": None, "address_type": 0},
        "c": {"app_name": "app-c", "title": "Bar", "address_list": "http://a/"},
        "d": {"app_name": "app-d", "title": "ark", "address_list": "", "address_type": 0},
        "e": {"app_name": "app-e", "title": "cat", "address_list": "", "address_type": 0},
        "f": {"app_name": "app-f", "title": "dog", "address_list": "", "address_type": 0},
    }
    made = {letter: make_group(**row) for letter, row in rows.items()}
    beats = (("app-c", "x", T0 + 9_000), ("app-c", "y", T0), ("app-b", "x", T0 + 5_000))
    for app_name, address, last_seen_ms in beats:
        save(
            Registration(
                registry_group="EXECUTOR",
                registry_key=app_name,
                registry_value=address,
                update_time=last_seen_ms,
            )
        )
    save(Registration(registry_group="ADMIN", registry_key="app-a", registry_value="x", update_time=T0))
    for app_name, address, last_seen_ms in (
        ("app-e", "x", T0 - 2_000),
        ("app-e", "y", T0 - 9_000),
        ("app-f", "x", T0 - 3_000),
        ("app-b", "old", T0 - 10_000),
    ):
        save(LastSeen(app_name=app_name, address=address, last_seen_ms=last_seen_ms))
    check(
        groups,
        {group.id: letter for letter, group in made.items()},
        {
            "appname": ("bacdef", "fedcab"),
            "title": ("bdcefa", "afecdb"),
            "registration": ("bdefac", "cafedb"),
            "addresses": ("bdefca", "acfedb"),
            "heartbeat": ("feacbd", "caefdb"),
            "": ("bacdef", "bacdef"),
        },
    )


def test_users_are_sorted_by_each_column(database: str) -> None:
    rows = {"a": ("cara", 1, 0), "b": ("anna", 0, 1), "c": ("bert", 0, 0)}
    made = {
        letter: save(User(username=name, password="", role=role, disabled=off))
        for letter, (name, role, off) in rows.items()
    }
    check(
        user_rows,
        {user.id: letter for letter, user in made.items()},
        {"name": ("bca", "acb"), "role": ("bca", "acb"), "state": ("cab", "bac"), "": ("bca", "bca")},
    )


def test_the_audit_is_read_in_both_directions(database: str) -> None:
    made = {letter: save(AuditEntry(at_ms=T0, action="job.start")) for letter in "abc"}
    check(
        audit_rows,
        {entry.id: letter for letter, entry in made.items()},
        {"time": ("abc", "cba"), "username": ("cba", "cba")},
    )


@pytest.mark.parametrize("status", [LogStatus.ALL, LogStatus.RUNNING])
def test_runs_are_read_in_both_directions(database: str, status: LogStatus) -> None:
    job = make_job()
    rows = {"a": T0 + 1_000, "b": T0, "c": T0 + 1_000, "d": T0 + 2_000}
    made = {letter: make_log(job, trigger_time=when) for letter, when in rows.items()}
    if status is LogStatus.RUNNING:
        make_log(job, trigger_time=T0, handle_code=200)

    def read(order: Order, start: int, length: int) -> Page[Any]:
        return logs(order, start, length, status=status)

    check(
        read,
        {log.id: letter for letter, log in made.items()},
        {"time": ("bacd", "dcab"), "duration": ("dcab", "dcab")},
    )
    with read_scope() as session:
        ids = log_lists.list_ids(
            session, LogFilter(status=status, order=OLDEST_FIRST), group_ids=None, limit=3
        )
    assert ids == [made[letter].id for letter in "bac"]


def test_the_last_run_is_the_last_visible_one(database: str) -> None:
    """The order must not reveal runs a job had in another group; a run without a time does not count."""
    visible, foreign = make_group().id, make_group().id
    moved, other, older = (make_job(job_group=visible) for _number in range(3))
    for job, group_id, ran_ms in (
        (moved, visible, T0 + 1_000),
        (moved, foreign, T0 + 9_000),
        (other, visible, T0),
        (other, visible, None),
        (older, visible, T0 - 3 * DAY_MS),
        (older, visible, T0 - 2 * DAY_MS),
    ):
        make_log(job, job_group=group_id, trigger_time=ran_ms)
    ids = [moved.id, other.id, older.id]
    with read_scope() as session:
        for order, expected in (("-last", ids), ("last", ids[::-1])):
            job_filter = JobFilter(order=Order("last", descending=order.startswith("-")))
            page = job_lists.list_jobs(session, job_filter, group_ids=[visible], start=0, length=9)
            assert [job.id for job in page.rows] == expected


@pytest.mark.parametrize("newest_runs", [(2,), (2_000,)])
def test_failing_jobs_precede_those_that_ran_last(
    database: str, monkeypatch: pytest.MonkeyPatch, newest_runs: tuple[int, ...]
) -> None:
    """Whether a job is failing depends on its visible runs, which its row shows."""
    monkeypatch.setattr(last_runs, "NEWEST_RUNS", newest_runs)
    foreign = make_group().id
    made = [make_job() for _number in range(5)]
    runs = ((0, 9, 200), (1, 6, 500), (2, 4, 500), (3, 5, 500), (3, 8, 200), (4, 1, 200))
    for number, ran_ms, result in runs:
        make_log(made[number], trigger_time=T0 + ran_ms * 1_000, handle_code=result)
    make_log(made[1], job_group=foreign, trigger_time=T0 + 20_000, handle_code=200)
    for group_ids, numbers in ((None, (2, 1, 0, 3, 4)), ([job.job_group for job in made], (1, 2, 0, 3, 4))):
        expected = [made[number].id for number in numbers]
        with read_scope() as session:
            failing_ids = tuple(find_failing(session, group_ids))
            last_first = JobFilter(failing_ids=failing_ids, order=Order("last", descending=True))
            for start, length in ((0, 1), (0, 3), (1, 2), (0, 5), (3, 9)):
                page = job_lists.list_jobs(
                    session, last_first, group_ids=group_ids, start=start, length=length
                )
                assert [job.id for job in page.rows] == expected[start : start + length]
                assert page.total == 5


@pytest.mark.parametrize("newest_runs", [(4,), (7,), (2_000,), (4, 2_000)])
def test_jobs_that_ran_last_are_the_same_however_few_runs_are_read(
    database: str, monkeypatch: pytest.MonkeyPatch, newest_runs: tuple[int, ...]
) -> None:
    """Of runs of the same instant, the limit may leave some out; a user sees no runs of other groups."""
    monkeypatch.setattr(last_runs, "NEWEST_RUNS", newest_runs)
    made = [make_job(author="ann") for _number in range(5)]
    for number, ran_ms in ((0, 9), (0, 8), (3, 8), (2, 8), (4, 7), (1, 5), (3, 2), (1, 1)):
        make_log(made[number], trigger_time=T0 + ran_ms * 1_000)
    make_log(make_job(), trigger_time=T0 + 6_000)
    make_log(made[4], job_group=make_job().job_group, trigger_time=T0 + 9_000)
    newest_first = JobFilter(author="ann", order=Order("last", descending=True))
    for group_ids, numbers in ((None, (4, 0, 3, 2, 1)), ([job.job_group for job in made], (0, 3, 2, 4, 1))):
        expected = [made[number].id for number in numbers]
        with read_scope() as session:
            for start, length in ((0, 1), (0, 2), (1, 2), (0, 5), (3, 9)):
                page = job_lists.list_jobs(
                    session, newest_first, group_ids=group_ids, start=start, length=length
                )
                assert [job.id for job in page.rows] == expected[start : start + length]
                assert page.total == 5
