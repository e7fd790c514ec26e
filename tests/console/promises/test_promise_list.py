"""Page of promises: states with numbers, filters, how often each was kept, rights."""

import json
from collections.abc import Callable

import pytest

from app.console.ui.promise_words import breach_text, kept_share, promise_text
from app.domain.access.permissions import Right
from app.domain.promises.promise import promise_of
from app.services.promises.lists import Verdicts
from tests.console.pages import text_of
from tests.support.console import Console, add_group, add_job
from tests.support.promises import make_promise
from tests.support.statements import statements

pytestmark = pytest.mark.databases("sqlite")

BROKEN = {"kept_ms": 1_000, "broken_ms": 2_000}
MONTH = json.dumps({"2026-11-28": [995, 3, 1], "2026-11-29": [2, 0, 0]})


def test_broken_promises_come_first_with_how_often_they_were_kept(admin: Console) -> None:
    group_id = add_group()
    first, second = add_job(group_id, job_desc="alpha"), add_job(group_id, job_desc="omega")
    make_promise(first)
    make_promise(first, {"kind": "takes_at_most", "s": 5400}, number=2, kept_ms=0)
    make_promise(second, {"kind": "fails_at_most", "n": 2, "then": "switch_off"}, days=MONTH, **BROKEN)
    page = admin.get("/promises")
    text = text_of(page)
    assert "All 3 Broken 1 Kept 1 Not yet due 1" in text
    assert text.index("omega") < text.index("alpha")
    assert "fails at most 2 times in a row, else it is switched off" in text
    assert "99.7 %" in text
    assert "997 kept, 3 broken, 1 excused in the last 30 days" in page.text
    assert "takes at most 90 min" in text


def test_filters_by_state_kind_job_and_executor(admin: Console) -> None:
    group_id, other_id = add_group(), add_group("other-app", "Other")
    mine, theirs = add_job(group_id, job_desc="nightly"), add_job(other_id, job_desc="hourly")
    make_promise(mine, **BROKEN)
    make_promise(theirs, {"kind": "takes_at_least", "s": 5})
    for query, expected in (
        ("state=broken", "nightly"),
        ("kind=takes_at_least", "hourly"),
        (f"jobId={mine}", "nightly"),
        (f"jobGroup={other_id}", "hourly"),
    ):
        text = text_of(admin.get(f"/promises?{query}"))
        assert expected in text, query
        assert ({"nightly", "hourly"} - {expected}).pop() not in text, query
    assert "No promise matches" in text_of(admin.get("/promises?state=new"))
    typed = admin.get("/promises?q=kind:takes-at-least")
    assert "kind=takes_at_least" in typed.headers["Location"]


def test_without_promises_the_page_says_what_they_are(admin: Console) -> None:
    assert "No job promises anything yet" in text_of(admin.get("/promises"))


def test_statements_do_not_depend_on_the_number_of_promises(admin: Console) -> None:
    group_id = add_group()

    def count() -> int:
        with statements() as seen:
            assert admin.get("/promises").status_code == 200
        return len(seen)

    make_promise(add_job(group_id))
    few = count()
    for _number in range(5):
        make_promise(add_job(group_id), **BROKEN)
    assert count() == few


def test_only_promises_of_visible_jobs(normal_user: Callable[..., Console]) -> None:
    group_id, other_id = add_group(), add_group("other-app", "Other")
    make_promise(add_job(group_id, job_desc="mine"))
    make_promise(foreign := add_job(other_id, job_desc="theirs"))
    viewer = normal_user(group_id, rights={group_id: frozenset({Right.VIEW})})
    text = text_of(viewer.get("/promises"))
    assert "All 1" in text
    assert "theirs" not in text
    assert "No promise matches" in text_of(viewer.get(f"/promises?jobId={foreign}"))


def test_words_of_each_kind(admin: Console) -> None:
    rows = {
        ("starts_within", "s", 60): ("starts within 1 min", "not started within 1 min"),
        ("finishes_within", "s", 90): ("succeeds within 90 s", "not succeeded within 90 s"),
        ("finishes_by", "at", "06:00"): ("succeeds by 06:00", "not succeeded by 06:00"),
        ("finishes_by", "at", "06:00+2d"): (
            "succeeds by 06:00, 2 days later",
            "not succeeded by 06:00, 2 days later",
        ),
        ("succeeds_every", "s", 86_400): ("succeeds at least every 1 day", "no success for 1 day"),
        ("takes_at_most", "s", 7_200): ("takes at most 2 hours", "takes longer than 2 hours"),
        ("takes_at_least", "s", 5): ("takes at least 5 s", "took less than 5 s"),
        ("takes_usual_times", "times", 2.5): (
            "takes at most 2.5 times as long as usual",
            "takes over 2.5 times as long as usual",
        ),
        ("fails_at_most", "n", 1): ("fails at most once in a row", "failed more than once in a row"),
        ("fails_at_most", "n", 0): ("never fails", "failed"),
    }
    with admin.app.test_request_context():
        for (kind, member, value), words in rows.items():
            promise = promise_of({"kind": kind, member: value})
            assert (promise_text(promise), breach_text(promise)) == words


def test_a_share_is_never_rounded_up(admin: Console) -> None:
    rows = {(0, 0): "", (10, 0): "100 %", (9_999, 1): "99.9 %", (0, 3): "0 %", (2, 1): "66.6 %"}
    with admin.app.test_request_context():
        assert {key: kept_share(Verdicts(*key)) for key in rows} == rows
