"""Who may call each operation of API v1 on which object, written by hand: the expectation of its matrix.

Not derived from the rights that the operations declare. An operation without an entry fails the matrix.
``{job}``, ``{group}``, … in paths and bodies are ids of a place, and ``"{group}"`` alone is its number.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

from tests.security.endpoints import INSTANCE, Needs

ANYONE, TOKEN, VIEW, RUN, EDIT, WRITE, ADMIN = Needs


class ApiCall(NamedTuple):
    """One request; its method is in the key of ``OPERATIONS``."""

    needs: Needs
    path: str
    body: Any = None
    #: a list: a foreign object only restricts it, and adds nothing
    is_list: bool = False
    #: statuses besides success that an administrator may get
    also: Collection[int] = ()


JOB = {"group_id": "{group}", "description": "mine", "owner": "eve", "handler": "x"}
DOCUMENT = {"jobs": {"{app_name}/made": {"description": "mine", "handler": "x"}}}
USER = {"username": "newcomer", "password": "long-enough-77"}
WEBHOOK = {"url": "http://127.0.0.1:9/"}
#: of an executor that does not answer
NO_ANSWER = (409, 502, 503)


def call(needs: Needs, path: str, body: Any = None, *, also: Collection[int] = ()) -> list[ApiCall]:
    return [ApiCall(needs, path, body, also=also)]


def listed(needs: Needs, *paths: str) -> list[ApiCall]:
    return [ApiCall(needs, path, is_list=True) for path in paths]


OF_EXECUTORS: dict[str, list[ApiCall]] = {
    "GET /groups": listed(VIEW, "/groups", "/groups?q=confidential"),
    "POST /groups": call(ADMIN, "/groups", {"app_name": "new-app", "title": "New"}),
    "GET /groups/<int:group_id>": call(VIEW, "/groups/{group}"),
    "PATCH /groups/<int:group_id>": call(ADMIN, "/groups/{group}", {"title": "Other"}),
    "DELETE /groups/<int:group_id>": call(ADMIN, "/groups/{group}", also=(409,)),
    "POST /groups/<int:group_id>/end-token-changeover": call(ADMIN, "/groups/{group}/end-token-changeover"),
    "GET /groups/<int:group_id>/instances": call(VIEW, "/groups/{group}/instances"),
    "GET /instances": [*listed(VIEW, "/instances"), *call(VIEW, "/instances?group_id={group}")],
    "GET /drains": [*listed(VIEW, "/drains"), *call(VIEW, "/drains?group_id={group}")],
    "POST /drains": call(RUN, "/drains", {"group_id": "{group}", "address": INSTANCE}),
    "GET /drains/<int:drain_id>": call(VIEW, "/drains/{drain}"),
    "DELETE /drains/<int:drain_id>": call(RUN, "/drains/{drain}"),
}
OF_JOBS: dict[str, list[ApiCall]] = {
    "GET /jobs": [*listed(VIEW, "/jobs", "/jobs?q=confidential"), *call(VIEW, "/jobs?group_id={group}")],
    "POST /jobs": call(EDIT, "/jobs", JOB),
    "GET /jobs/<int:job_id>": [*call(VIEW, "/jobs/{job}"), *call(VIEW, "/jobs/{code}")],
    "PATCH /jobs/<int:job_id>": call(EDIT, "/jobs/{job}", {"description": "mine"}),
    "DELETE /jobs/<int:job_id>": call(EDIT, "/jobs/{job}"),
    "POST /jobs/<int:job_id>/start": call(RUN, "/jobs/{job}/start", also=(422,)),
    "POST /jobs/<int:job_id>/stop": call(RUN, "/jobs/{job}/stop"),
    "GET /jobs/<int:job_id>/next-times": call(VIEW, "/jobs/{job}/next-times"),
    "GET /jobs/<int:job_id>/parameter-preview": call(VIEW, "/jobs/{job}/parameter-preview"),
    "GET /jobs/<int:job_id>/promises": call(VIEW, "/jobs/{job}/promises"),
    "POST /schedules/next-times": [
        ApiCall(
            TOKEN, "/schedules/next-times", {"schedule_type": "CRON", "schedule": "0 0 3 * * ?"}, is_list=True
        )
    ],
    "GET /jobs/<int:job_id>/versions": call(VIEW, "/jobs/{job}/versions"),
    "GET /jobs/<int:job_id>/versions/<int:number>": call(VIEW, "/jobs/{job}/versions/1"),
    "POST /jobs/<int:job_id>/versions/<int:number>/restore": call(EDIT, "/jobs/{job}/versions/1/restore"),
    "GET /jobs/<int:job_id>/code": call(WRITE, "/jobs/{code}/code"),
    "PUT /jobs/<int:job_id>/code": call(WRITE, "/jobs/{code}/code", {"source": "id", "remark": "four"}),
    "GET /jobs/<int:job_id>/code/versions": call(WRITE, "/jobs/{code}/code/versions"),
    "GET /jobs/<int:job_id>/code/versions/<int:version_id>": call(
        WRITE, "/jobs/{code}/code/versions/{version}"
    ),
}
OF_RUNS: dict[str, list[ApiCall]] = {
    "POST /jobs/<int:job_id>/runs": [
        *call(RUN, "/jobs/{job}/runs", {}),
        *call(RUN, "/jobs/{job}/runs", {"in_s": 60}),
    ],
    "POST /runs:batch": call(RUN, "/runs:batch", {"runs": [{"job_id": "{job}"}]}),
    "GET /runs": [
        *listed(VIEW, "/runs"),
        *call(VIEW, "/runs?group_id={group}"),
        *call(VIEW, "/runs?job_id={job}"),
    ],
    "GET /runs/<run_id>": call(VIEW, "/runs/{log}"),
    "GET /logs/search": [
        *listed(VIEW, "/logs/search?regex=true&q=c[o]nfidential"),
        *listed(VIEW, "/logs/search?regex=true&q=c[o]nfidential&group_id={group}"),
        *listed(VIEW, "/logs/search?regex=true&q=c[o]nfidential&job_id={job}"),
    ],
    "GET /runs/<run_id>/log": call(VIEW, "/runs/{log}/log", also=NO_ANSWER),
    "POST /runs/<run_id>/kill": call(RUN, "/runs/{log}/kill", also=NO_ANSWER),
    "POST /runs/<run_id>/retry": call(RUN, "/runs/{log}/retry", also=(409,)),
    "DELETE /runs/<run_id>": [
        *call(RUN, "/runs/{log}", also=(409,)),
        *call(RUN, "/runs/w{waiting}"),
    ],
    "POST /runs/<run_id>/start": call(RUN, "/runs/w{waiting}/start"),
    "POST /runs/<run_id>/release": call(RUN, "/runs/{log}/release", also=(409,)),
    "GET /skips": [*listed(VIEW, "/skips"), *call(VIEW, "/skips?job_id={job}")],
}
OF_ALARMS: dict[str, list[ApiCall]] = {
    "GET /alarms": [
        *listed(VIEW, "/alarms"),
        *call(VIEW, "/alarms?job_id={job}"),
        *call(VIEW, "/alarms?group_id={group}"),
    ],
    "GET /channels": listed(ADMIN, "/channels"),
    "POST /channels": call(ADMIN, "/channels", {"name": "hook", "kind": "webhook", "settings": WEBHOOK}),
    "GET /channels/<int:channel_id>": call(ADMIN, "/channels/{channel}"),
    "PATCH /channels/<int:channel_id>": call(ADMIN, "/channels/{channel}", {"name": "other"}),
    "DELETE /channels/<int:channel_id>": call(ADMIN, "/channels/{channel}"),
    "POST /channels/<int:channel_id>/test": call(ADMIN, "/channels/{channel}/test"),
    "GET /incidents": [
        *listed(VIEW, "/incidents", "/incidents?state=open"),
        *call(VIEW, "/incidents?job_id={job}"),
        *call(VIEW, "/incidents?group_id={group}"),
    ],
    "GET /incidents/<int:incident_id>": call(VIEW, "/incidents/{incident}"),
    "POST /incidents/<int:incident_id>/acknowledge": call(RUN, "/incidents/{incident}/acknowledge"),
    "GET /mutes": listed(VIEW, "/mutes"),
    "POST /mutes": [
        *call(RUN, "/mutes", {"job_id": "{job}"}),
        *call(RUN, "/mutes", {"group_id": "{group}"}),
    ],
    "GET /mutes/<int:mute_id>": call(VIEW, "/mutes/{mute}"),
    "DELETE /mutes/<int:mute_id>": call(RUN, "/mutes/{mute}"),
}
OF_THE_INSTALLATION: dict[str, list[ApiCall]] = {
    "GET /me": listed(TOKEN, "/me"),
    "GET /report": [*listed(VIEW, "/report")],
    "GET /report/completeness": [*listed(VIEW, "/report/completeness")],
    "GET /report/completeness/verification": listed(VIEW, "/report/completeness/verification?day=2026-11-28"),
    "GET /report/summary": listed(VIEW, "/report/summary"),
    "GET /nodes": listed(ADMIN, "/nodes"),
    "GET /audit": listed(ADMIN, "/audit"),
    "GET /users": listed(ADMIN, "/users"),
    "POST /users": call(ADMIN, "/users", USER),
    "GET /users/<int:user_id>": call(ADMIN, "/users/{user}"),
    "PATCH /users/<int:user_id>": call(ADMIN, "/users/{user}", {"disabled": True}),
    "DELETE /users/<int:user_id>": call(ADMIN, "/users/{user}"),
    "GET /tokens": listed(ADMIN, "/tokens"),
    "POST /tokens": call(ADMIN, "/tokens", {"name": "new", "rights": ["view"]}),
    "GET /tokens/<int:token_id>": call(ADMIN, "/tokens/{service}"),
    "DELETE /tokens/<int:token_id>": call(ADMIN, "/tokens/{service}"),
}
SECRET = {"name": "NEW_KEY", "secret": "a new secret value"}
OF_VARIABLES: dict[str, list[ApiCall]] = {
    "GET /variables": [*listed(VIEW, "/variables"), *call(VIEW, "/variables?group_id={group}")],
    "POST /variables": [
        *call(EDIT, "/variables", {"name": "NEW", "value": "1", "group_id": "{group}"}),
        *call(ADMIN, "/variables", {"name": "NEW", "value": "1"}),
        *call(ADMIN, "/variables", SECRET),
    ],
    "GET /variables/<int:variable_id>": [
        *call(VIEW, "/variables/{variable}"),
        *call(VIEW, "/variables/{secret}"),
    ],
    "PATCH /variables/<int:variable_id>": call(EDIT, "/variables/{variable}", {"value": "2"}),
    "DELETE /variables/<int:variable_id>": [
        *call(EDIT, "/variables/{variable}"),
        *call(EDIT, "/variables/{secret}"),
    ],
}
OF_LIMITS: dict[str, list[ApiCall]] = {
    "GET /limits": listed(VIEW, "/limits"),
    "GET /limits/<name>": call(VIEW, "/limits/{limit}"),
    "PUT /limits/<name>": [
        *call(EDIT, "/limits/{limit}", {"slots": 4, "group_id": "{group}"}),
        *call(ADMIN, "/limits/new", {"slots": 4}),
    ],
    "DELETE /limits/<name>": call(EDIT, "/limits/{limit}"),
}
CALENDAR = {"days": {"2026-10-01": "holiday"}}
OF_CALENDARS: dict[str, list[ApiCall]] = {
    "GET /calendars": listed(TOKEN, "/calendars"),
    "POST /calendars": call(ADMIN, "/calendars", {"name": "new", **CALENDAR}),
    "GET /calendars/<name>": listed(TOKEN, "/calendars/cn"),
    "PUT /calendars/<name>": call(ADMIN, "/calendars/cn", CALENDAR),
    "DELETE /calendars/<name>": call(ADMIN, "/calendars/cn"),
    "POST /calendars/<name>/import": call(ADMIN, "/calendars/cn/import", {"csv": "2026-10-01,休"}),
    "GET /calendars/<name>/days": listed(TOKEN, "/calendars/cn/days?year=2026"),
}
OF_BLACKOUTS: dict[str, list[ApiCall]] = {
    "GET /blackouts": listed(VIEW, "/blackouts", "/blackouts?state=coming"),
    "POST /blackouts": [
        *call(RUN, "/blackouts", {"group_id": "{group}", "reason": "mine"}),
        *call(RUN, "/blackouts", {"job_id": "{job}", "reason": "mine"}),
        *call(ADMIN, "/blackouts", {"tag": "mine", "reason": "mine"}),
        *call(ADMIN, "/blackouts", {"reason": "mine"}),
    ],
    "GET /blackouts/<int:blackout_id>": call(VIEW, "/blackouts/{blackout}"),
    "POST /blackouts/<int:blackout_id>/end": call(RUN, "/blackouts/{blackout}/end"),
}
INSTANT = "2020-01-01T00:00:00Z"
OF_BACKFILLS: dict[str, list[ApiCall]] = {
    "POST /jobs/<int:job_id>/backfills": call(RUN, "/jobs/{job}/backfills", {"times": [INSTANT]}),
    "GET /backfills": listed(VIEW, "/backfills", "/backfills?job_id={job}"),
    "GET /backfills/<int:backfill_id>": call(VIEW, "/backfills/{backfill}"),
    "GET /backfills/<int:backfill_id>/instants": call(VIEW, "/backfills/{backfill}/instants"),
    "POST /backfills/<int:backfill_id>/pause": call(RUN, "/backfills/{backfill}/pause"),
    "POST /backfills/<int:backfill_id>/resume": call(RUN, "/backfills/{backfill}/resume"),
    "POST /backfills/<int:backfill_id>/cancel": call(RUN, "/backfills/{backfill}/cancel"),
}
OF_ROUNDS: dict[str, list[ApiCall]] = {
    "GET /rounds": listed(VIEW, "/rounds", "/rounds?job_id={job}"),
    "GET /rounds/<int:round_id>": call(VIEW, "/rounds/{round}"),
    "POST /rounds/<int:round_id>/run-missing": call(RUN, "/rounds/{round}/run-missing", also=(409,)),
    "GET /chains/<chain>": call(VIEW, "/chains/{chain}"),
    "GET /jobs/<int:job_id>/graph": call(VIEW, "/jobs/{job}/graph"),
}
OF_CODE: dict[str, list[ApiCall]] = {
    "POST /code/plan": call(EDIT, "/code/plan", {"document": DOCUMENT}),
    "POST /code/apply": [
        *call(EDIT, "/code/apply", {"document": DOCUMENT, "source": "mine"}),
        *call(EDIT, "/code/apply", {"document": {}, "source": "mine", "prune": ["{app_name}/made"]}),
        *call(ADMIN, "/code/apply", {"document": {"groups": {"{app_name}": {"title": "x"}}}, "source": "y"}),
    ],
    "GET /code/drift": listed(VIEW, "/code/drift"),
    "GET /code/export": [
        *listed(VIEW, "/code/export"),
        *call(VIEW, "/code/export?groups={app_name}"),
        *call(VIEW, "/code/export?jobs={job}"),
    ],
    "GET /code/applies": listed(ADMIN, "/code/applies"),
    "POST /code/applies/<int:apply_id>/undo": call(EDIT, "/code/applies/{apply}/undo", {}),
    "GET /code/schema.json": listed(ANYONE, "/code/schema.json"),
}
OPERATIONS = (
    OF_EXECUTORS
    | OF_JOBS
    | OF_RUNS
    | OF_ROUNDS
    | OF_BACKFILLS
    | OF_ALARMS
    | OF_VARIABLES
    | OF_LIMITS
    | OF_CALENDARS
    | OF_BLACKOUTS
    | OF_CODE
    | OF_THE_INSTALLATION
)
