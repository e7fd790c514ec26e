"""Plain requests that wait together: one transaction for each kind, and what the application gets instead."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.domain.access.permissions import Right
from app.factory import create_app
from app.fast_triggers.access_cache import KEPT_MS, RENEWED_MS
from app.fast_triggers.middleware import DECLINED
from app.fast_triggers.scripting import ScriptTriggers
from app.models.fire import Fire
from app.runtime.environ import FAILED, REQUEST_ID
from app.settings.config import Config
from executor_client.httpd.batching import BatchAnswer, BatchRequest, Declined, Outcome
from tests.api.v1.conftest import Api, make_token
from tests.console.conftest import CONTEXT, Console, add_group, add_job
from tests.factories import all_rows
from tests.fast_triggers.conftest import Clock, Views

Requests = list[BatchRequest]


def form(job_id: int) -> dict[str, Any]:
    return {"id": job_id, "executorParam": ""}


def statuses(outcomes: Sequence[Outcome]) -> list[Any]:
    return [outcome.status if isinstance(outcome, BatchAnswer) else outcome for outcome in outcomes]


def test_requests_that_wait_together_share_a_transaction(
    admin: Console, views: Views, sent: Requests, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = add_job(add_group())
    for job in (job_id, job_id, 4711, job_id):
        admin.post("/jobinfo/trigger", form(job))
    sizes: list[int] = []
    carry_out = ScriptTriggers.carry_out

    def count(self: ScriptTriggers, session: Session, orders: Sequence[Any]) -> Any:
        sizes.append(len(orders))
        return carry_out(self, session, orders)

    monkeypatch.setattr(ScriptTriggers, "carry_out", count)
    before = len(all_rows(Fire))
    outcomes = views.path.answer([*sent, replace(sent[0], headers={})])
    assert statuses(outcomes) == [200, 200, DECLINED, 200, None]
    assert (sizes, len(all_rows(Fire)) - before) == ([4], 3)
    ids = {dict(outcome.headers)["X-Request-Id"] for outcome in outcomes if isinstance(outcome, BatchAnswer)}
    keys = [fire.fire_key for fire in all_rows(Fire)[before:]]
    assert len(ids) == 3
    assert all(any(each in key for each in ids) for key in keys)


def test_both_kinds_wait_together_and_two_requests_with_a_key_start_one_run(
    admin: Console, app: Flask, views: Views, sent: Requests, clock: Clock
) -> None:
    job_id = add_job(add_group())
    api = Api(app, make_token(Right.OPERATE))
    for _ in range(2):  # the first use of a token is recorded, which ends passes
        api.post(f"{CONTEXT}/api/v1/jobs/{job_id}/runs", {"param": "x"})
    admin.post("/jobinfo/trigger", form(job_id))
    *_, by_token, by_script = sent
    with_key = replace(by_token, headers={**by_token.headers, "IDEMPOTENCY_KEY": "k"})
    before = len(all_rows(Fire))
    outcomes = views.path.answer([by_token, with_key, by_script, with_key])
    assert statuses(outcomes) == [202, 202, 200, DECLINED]
    assert len(all_rows(Fire)) - before == 3


def test_one_request_renews_a_pass_and_without_one_all_may_make_it(
    admin: Console, views: Views, sent: Requests, clock: Clock
) -> None:
    admin.post("/jobinfo/trigger", form(add_job(add_group())))
    for step_ms, expected in ((RENEWED_MS + 1, [DECLINED, 200]), (KEPT_MS, [None, None])):
        clock.now_ms += step_ms
        assert statuses(views.path.answer(sent * 2)) == expected


def test_a_request_of_unknown_outcome_keeps_its_id(
    admin: Console, app: Flask, views: Views, sent: Requests, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.post("/jobinfo/trigger", form(add_job(add_group())))
    lost = OperationalError("COMMIT", None, Exception("connection lost"))

    def lose(*_: object) -> None:
        raise lost

    monkeypatch.setattr(ScriptTriggers, "carry_out", lose)
    (outcome,) = views.path.answer(sent)
    assert isinstance(outcome, Declined)
    assert outcome.environ[FAILED] is lost

    def declined(environ: dict[str, Any], start_response: Any) -> Any:
        return inner({**environ, **outcome.environ}, start_response)

    inner, app.wsgi_app = app.wsgi_app, declined  # type: ignore[method-assign]
    answer = admin.post("/jobinfo/trigger", form(1))
    assert answer.headers["X-Request-Id"] == outcome.environ[REQUEST_ID]
    assert len(all_rows(Fire)) == 1


@pytest.mark.parametrize(
    ("change", "names"),
    [({}, ["callbacks", "triggers"]), ({"proxy_count": 1}, []), ({"access_log": True}, [])],
)
def test_requests_are_answered_together_unless_the_middleware_is_needed(
    settings: Config, change: dict[str, Any], names: list[str]
) -> None:
    batched = create_app(replace(settings, **change)).extensions["xxl_job_batched"]
    assert [each.name for each in batched] == names
