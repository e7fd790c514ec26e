"""The contract: every operation answers as its document says, whatever it is sent.

Schemathesis makes the requests from the document, valid and invalid ones. Ids in paths are mostly those of
objects that exist, and what would remove these is a dry run.
"""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any
from urllib.parse import urljoin

import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode, checks
from schemathesis.core.failures import FailureGroup
from schemathesis.core.parameters import ParameterLocation
from schemathesis.schemas import APIOperation, BaseSchema
from werkzeug.wsgi import ClosingIterator

from app.api.v1.application import document_json
from app.database.engine import read_scope
from app.models.alarm import Alarm
from app.models.skip import Skip
from app.settings.config import Config
from app.store.jobs import scheduling as job_store
from tests.pipeline.steps import LOOPBACK
from tests.support.api_v1 import ALL, Api, app_of, make_token
from tests.support.factories import SECOND, T0, make_log, save
from tests.support.fake_executor import Answer, FakeExecutor

Operation = APIOperation[Any, Any, Any, Any]
#: the operations are divided among so many tests, which can run at the same time
PARTS = 4
#: requests to an operation in each mode
EXAMPLES, MANY = 3, 60
#: not promised by a document: a value of the right form may still be refused; an id may be gone
EXCLUDED = [
    checks.positive_data_acceptance,
    checks.ensure_resource_availability,
    checks.use_after_free,
    checks.unsupported_method,
    checks.ignored_auth,
]
REFUSALS = ["400", "401", "403", "404", "405", "409", "412", "415", "422"]
GROUP = {"app_name": "demo", "title": "Demo", "address_type": "manual"}
CHANNEL = {"name": "Hook", "kind": "webhook", "settings": {"url": "http://127.0.0.1:9/hook"}}
LOG = Answer.json(content={"fromLineNum": 1, "toLineNum": 1, "logContent": "one", "isEnd": True})
DOCUMENT = {"format": 1, "groups": {"coded": {"title": "Coded"}}}


def make_objects(api: Api, address: str) -> dict[str, str]:
    """Add an object of every kind; return the parameters of paths that name them.

    ``address``: of an instance.
    """
    ids: dict[str, str] = {}

    def add(name: str, path: str, body: Any) -> Any:
        answer = api.post(path, body)
        assert answer.status_code in (200, 201, 202), (path, answer.text)
        made = answer.json["apply_id" if name == "apply_id" else "id"]
        ids[name] = str(made)
        return made

    group_id = add("group_id", "/groups", {**GROUP, "addresses": [address, SECOND]})
    job = {"group_id": group_id, "description": "nightly", "owner": "ann", "handler": "demoJobHandler"}
    job_id = add("job_id", "/jobs", {**job, "run_mode": "BEAN"})
    api.patch(f"/jobs/{job_id}", {"param": "changed"})
    add("mute_id", "/mutes", {"job_id": job_id})
    add("drain_id", "/drains", {"group_id": group_id, "address": SECOND})
    add("blackout_id", "/blackouts", {"job_id": job_id, "from": "2090-01-01T00:00:00Z", "reason": "moving"})
    add("backfill_id", f"/jobs/{job_id}/backfills", {"times": ["2020-01-01T00:00:00Z"]})
    add("channel_id", "/channels", CHANNEL)
    add("variable_id", "/variables", {"group_id": group_id, "name": "REGION", "value": "eu-1"})
    add("user_id", "/users", {"username": "alice", "password": "battery-staple-9"})
    add("token_id", "/tokens", {"name": "other", "rights": ["view"]})
    add("apply_id", "/code/apply", {"document": DOCUMENT, "source": "infra@1a2b3c"})
    with read_scope() as session:
        (found,) = job_store.find_jobs(session, [job_id]).values()
    log = make_log(found, executor_address=address, handle_code=200, handle_msg="done", handle_time=T0)
    save(Alarm(job_id=job_id, log_id=log.id, reason="failed", created_ms=T0, outcome='{"mail a@b.c": "ok"}'))
    skip = {"from_ms": T0, "to_ms": T0, "skipped": 1, "reason": "misfire", "recorded_ms": T0}
    save(Skip(job_id=job_id, **skip))
    return {**ids, "run_id": str(log.id), "number": "1", "version_id": "1"}


@pytest.fixture
def api(config: Config, database: str) -> Api:
    return Api(
        app_of(replace(config, executor_networks=LOOPBACK)), make_token(*ALL, admin=True, name="contract")
    )


def ended(app: Flask) -> Any:
    """Return an application that ends each answer as a server does; the client here leaves streams open."""

    def answer(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        with closing(ClosingIterator(app(environ, start_response))) as parts:
            return list(parts)

    return answer


def operations(api: Api) -> Iterator[Operation]:
    schema: BaseSchema = schemathesis.openapi.from_wsgi("/openapi.json", ended(api.app))
    # every request has a token; an If-Match that does not fit is a refusal as well
    schema.config.generation.with_security_parameters = False
    schema.config.checks.negative_data_rejection.expected_statuses = REFUSALS
    for found in schema.get_all_operations():
        yield found.ok()


def try_operation(operation: Operation, mode: GenerationMode, call: Any, count: int) -> None:
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=count == EXAMPLES,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), exists=st.integers(0, 4))
    def send(case: Case, exists: int) -> None:
        call(case, exists > 0)

    send()


def aimed(case: Case, ids: dict[str, str], *, exists: bool) -> Case:
    """Name objects that exist, unless the path is what is wrong; take back what would remove them."""
    assert case.meta is not None
    wrong = {place for place, part in case.meta.components.items() if part.mode.is_negative}
    if exists and ParameterLocation.PATH not in wrong:
        given_ids = case.path_parameters or {}
        case.path_parameters = {name: ids.get(name, value) for name, value in given_ids.items()}
    removes = case.method == "DELETE" or case.path.endswith(("/undo", "/apply"))
    if removes and ParameterLocation.QUERY not in wrong:
        case.query = {**(case.query or {}), "dry_run": "true"}
    return case


@pytest.mark.parametrize("part", range(PARTS))
def test_every_operation_answers_as_documented(
    api: Api, hook: FakeExecutor, part: int, pytestconfig: pytest.Config
) -> None:
    hook.respond("log", LOG)
    ids, problems = make_objects(api, hook.address), []
    headers = {"Authorization": f"Bearer {api.token}"}
    count = MANY if pytestconfig.getoption("all") else EXAMPLES

    def call(case: Case, exists: bool) -> None:
        aimed(case, ids, exists=exists).call_and_validate(headers=headers, excluded_checks=EXCLUDED)

    for operation in list(operations(api))[part::PARTS]:
        for mode in GenerationMode:
            try:
                try_operation(operation, mode, call, count)
            except Unsatisfiable:
                continue  # there is nothing to get wrong
            except FailureGroup as failed:
                problems.append(f"{operation.label}, {mode}: {failed}")
    assert not problems, "\n\n".join(problems)


def test_the_document_is_valid_and_its_paths_lie_beside_it(api: Api) -> None:
    schema: BaseSchema = schemathesis.openapi.from_wsgi("/openapi.json", ended(api.app))
    schema.validate()
    (server,) = schema.raw_schema["servers"]
    for address in ("https://host/api/v1/", "https://proxy/jobs/xxl-job-admin/api/v1/"):
        assert urljoin(f"{address}openapi.json", server["url"]) == address


def test_every_operation_needs_a_token_unless_it_is_public(api: Api) -> None:
    for operation in operations(api):
        path = re.sub(r"{\w+}", "1", operation.path)
        answer = api.with_token("")(operation.method.upper(), path)
        if operation.definition.raw.get("security") == []:
            assert answer.status_code == 200, operation.label
        else:
            assert (answer.status_code, answer.content_type) == (401, "application/problem+json"), (
                operation.label
            )


def test_no_default_stands_for_what_a_change_leaves_out() -> None:
    schemas = json.loads(document_json())["components"]["schemas"]
    defaults = [
        f"{name}.{member}"
        for name, schema in schemas.items()
        if name.endswith(("Patch", "Settings")) or name.startswith("Code") or name == "ChannelIn"
        for member, described in schema["properties"].items()
        if "default" in described
    ]
    assert defaults == [], "a client made from the document sends them"
