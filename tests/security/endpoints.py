"""Who may call each endpoint of the console on which object, written by hand: the expectation of the matrix.

Not derived from the program's own policy, which it proves. A new endpoint without an entry fails the matrix.
``{job}``, ``{group}``, … in paths and forms are ids of a ``Place``.
"""

import json
from enum import StrEnum
from typing import Any, NamedTuple

from tests.support.console_scripting import BEAN


class Needs(StrEnum):
    """Least that a caller needs."""

    ANYONE = "anyone"
    LOGIN = "login"
    VIEW = "view"
    OPERATE = "operate"
    EDIT = "edit"
    GLUE = "glue"
    ADMIN = "admin"


class Call(NamedTuple):
    """One request."""

    needs: Needs
    path: str
    #: None: by GET
    form: dict[str, Any] | None = None
    #: a list: a foreign object only restricts it, and adds nothing
    is_list: bool = False


ANYONE, LOGIN, VIEW, RUN, EDIT, WRITE, ADMIN = Needs
JOB_FORM = {
    "job_desc": "mine",
    "author": "eve",
    "schedule_type": "NONE",
    "glue_type": "BEAN",
    "executor_handler": "x",
    "executor_route_strategy": "FIRST",
    "misfire_strategy": "DO_NOTHING",
    "executor_block_strategy": "SERIAL_EXECUTION",
    "delivery": "auto",
    "retry_backoff_percent": "100",
}
IMPORTED = {"jobDesc": "mine", "author": "eve", "executorHandler": "x"}
CODE = {"glueSource": "id", "glueRemark": "four", "glue_source": "id", "glue_remark": "four"}
BOUNDS = {"job_group": "{group}", "job_id": "0", "kind": "9"}
GROUP_FORM = {"app_name": "new-app", "title": "New", "address_type": "0"}
GROUP_BEAN = {"appname": "new-app", "title": "New", "addressType": "0"}
USER = {"username": "newcomer", "password": "long-enough-77", "role": "0"}
TOKEN = {"name": "ci", "rights": "view", "scope": "all", "expires": "30"}
CHANNEL = {"name": "hook", "url": "http://127.0.0.1:9/", "scope": "chosen", "groups": "{group}"}
INSTANCE = "http://127.0.0.1:1024"


def confirmed(needs: Needs, path: str, **form: str) -> list[Call]:
    """A page and its form."""
    return [Call(needs, path), Call(needs, path, form)]


def listed(needs: Needs, *paths: str) -> list[Call]:
    return [Call(needs, path, is_list=True) for path in paths]


def bulk(needs: Needs, act: str) -> list[Call]:
    return confirmed(needs, f"/jobinfo/bulk/{act}?id={{job}}", job_group="{group}", tag="x")


PUBLIC: dict[str, list[Call]] = {
    "static": [Call(ANYONE, "/static/css/app.css")],
    "health.up": [Call(ANYONE, "/health")],
    "health.actuator": [Call(ANYONE, "/actuator/health")],
    # 503 here, as no scheduler runs: see tests/console/operations/test_health.py
    "health.ready": [],
    # off: see tests/console/operations/test_metrics.py
    "metrics.show": [],
    "auth.login_page": [Call(ANYONE, "/toLogin")],
    # for anyone, but nothing without a provider: see test_sign_on.py
    "sign_on.start": [],
    "sign_on.callback": [],
    "auth.log_in": [Call(ANYONE, "/toLogin", {"userName": "x", "password": "wrong"})],
    "account.preferences": [Call(ANYONE, "/preferences", {"theme": "dark"})],
    "scripting_login.log_in": [Call(ANYONE, "/login", {"userName": "x", "password": "wrong"})],
    "scripting_login.log_out": [Call(ANYONE, "/logout", {})],
}
OF_THE_USER: dict[str, list[Call]] = {
    "account.show": [Call(LOGIN, "/account")],
    "account.change_password": [Call(LOGIN, "/account/password", {"old_password": "wrong"})],
    "account.change_settings": [Call(LOGIN, "/account/settings", {"language": "en", "time_zone": ""})],
    "account.end_login": confirmed(LOGIN, "/account/logins/{login}/end"),
    "account.end_other_logins": confirmed(LOGIN, "/account/logins/end"),
    "api_tokens.index": listed(LOGIN, "/account/tokens"),
    "api_tokens.add": confirmed(LOGIN, "/account/tokens/new", **TOKEN),
    "api_tokens.revoke": confirmed(LOGIN, "/account/tokens/{token}/revoke"),
    "account.log_out": [Call(LOGIN, "/account/logout", {})],
    "start_page.lead": [Call(LOGIN, "/start")],
    "start_page.choose": [Call(LOGIN, "/account/start-page", {"start_page": ""})],
    "scripting_users.update_password": [
        Call(LOGIN, "/user/updatePwd", {"oldPassword": "wrong", "password": "long-enough-77"})
    ],
    "saved_views.add": confirmed(LOGIN, "/views/jobs/new?author=ann", name="of ann"),
    "saved_views.rename": confirmed(LOGIN, "/views/{view}/edit", name="renamed"),
    "saved_views.remove": confirmed(LOGIN, "/views/{view}/delete"),
    "tasks.index": listed(LOGIN, "/tasks"),
    "tasks.show": [Call(LOGIN, "/tasks/{task}")],
    "tasks.cancel": [Call(LOGIN, "/tasks/{task}/cancel", {})],
    "help.index": [Call(LOGIN, "/help")],
    "api_reference.show": [Call(LOGIN, "/help/api")],
    "connect.show": listed(LOGIN, "/connect"),
    "jobs.preview_part": [Call(LOGIN, "/jobinfo/preview?schedule_type=NONE")],
    "parameter_previews.of_job": [
        Call(LOGIN, "/jobinfo/parameter-preview", {"executor_param": "${time:yyyy}"})
    ],
    "jobs.parameters_part": [Call(LOGIN, "/jobinfo/parameters?job_group=1&executor_handler=any&shown=1")],
    "promise_parts.defaults": [Call(LOGIN, "/jobinfo/promise-defaults?job_group=1")],
    "rounds_preview.part": [Call(LOGIN, "/jobinfo/rounds?after_jobs=1&schedule_type=CRON&cron=0+0+2+*+*+?")],
    "jobs.note_part": [Call(LOGIN, "/jobinfo/summary/alarms?alarm_email=a@example.com")],
    "scripting_jobs.next_trigger_time": [Call(LOGIN, "/jobinfo/nextTriggerTime?scheduleType=NONE")],
}
LISTS: dict[str, list[Call]] = {
    "dashboard.index": listed(LOGIN, "/", "/?hours=24"),
    "dashboard.chart": listed(LOGIN, "/report"),
    "load.index": listed(LOGIN, "/load"),
    "incidents.index": listed(
        LOGIN,
        "/incidents",
        "/incidents?state=all",
        "/incidents?state=all&jobGroup={group}",
        "/incidents?jobId={job}",
    ),
    "promises.index": listed(LOGIN, "/promises", "/promises?jobGroup={group}", "/promises?jobId={job}"),
    "completeness.index": listed(
        LOGIN,
        "/completeness",
        "/completeness?group_id={group}",
        "/completeness?job_id={job}&from=2026-11-28&to=2026-11-28",
    ),
    "completeness_export.as_csv": listed(LOGIN, "/completeness.csv", "/completeness.csv?job_id={job}"),
    "completeness_export.as_json": listed(LOGIN, "/completeness.json?group_id={group}&month=2026-11"),
    "pickers.jobs": listed(
        LOGIN,
        "/pick/jobs?q=",
        "/pick/jobs?q={job}",
        "/pick/jobs?q=confidential&jobGroup={group}&right=operate",
    ),
    "pickers.everything": listed(LOGIN, "/pick/all?q=", "/pick/all?q={job}", "/pick/all?q=confidential"),
    "pickers.handlers": listed(VIEW, "/pick/handlers?job_group={group}"),
    "pickers.groups": listed(LOGIN, "/pick/groups?q=confidential", "/pick/groups?q={group}&right=edit"),
    "scripting_logs.chart_info": listed(
        LOGIN, "/chartInfo?startDate=2000-01-01 00:00:00&endDate=2099-01-01 00:00:00"
    ),
    "jobs.index": listed(LOGIN, "/jobinfo", "/jobinfo?jobGroup={group}"),
    "logs.index": listed(
        LOGIN,
        "/joblog?range=all",
        "/joblog?range=all&jobGroup={group}",
        "/joblog?range=all&jobId={job}",
    ),
    "log_search.index": listed(
        LOGIN,
        "/logs/search?regex=1&q=c[o]nfidential",
        "/logs/search?regex=1&q=c[o]nfidential&jobGroup={group}",
        "/logs/search?regex=1&q=c[o]nfidential&jobId={job}",
    ),
    "log_export.export": listed(VIEW, "/joblog/runs.csv?range=all&jobGroup={group}&jobId={job}"),
    "logs.detail_page": listed(VIEW, "/joblog/logDetailPage?id={log}"),
    "scripting_jobs.page_list": listed(
        VIEW, "/jobinfo/pageList?jobGroup={group}&triggerStatus=-1&jobDesc=&id={job}"
    ),
    "scripting_logs.page_list": listed(VIEW, "/joblog/pageList?jobGroup={group}&jobId={job}&logStatus=-1"),
    "scripting_logs.jobs_by_group": listed(VIEW, "/joblog/getJobsByGroup?jobGroup={group}"),
}
JOBS: dict[str, list[Call]] = {
    "jobs.show": [Call(VIEW, "/jobinfo/{job}"), Call(VIEW, "/jobinfo/{code}")],
    "jobs.next_times": [Call(VIEW, "/jobinfo/{job}/next-times")],
    "promise_parts.suggestions": [Call(EDIT, "/jobinfo/{job}/promise-suggestions")],
    "jobs.nodes": [Call(VIEW, "/jobinfo/{job}/nodes")],
    "job_graph.show": [Call(VIEW, "/jobinfo/{job}/graph")],
    "jobs.add": [
        *listed(EDIT, "/jobinfo/new?jobGroup={group}"),
        Call(EDIT, "/jobinfo/new", JOB_FORM | {"job_group": "{group}"}),
    ],
    "jobs.copy": confirmed(EDIT, "/jobinfo/{job}/copy", **JOB_FORM, job_group="{group}"),
    "jobs.edit": confirmed(EDIT, "/jobinfo/{job}/edit", **JOB_FORM, job_group="{group}"),
    "job_actions.start": [Call(RUN, "/jobinfo/{job}/start", {})],
    "job_actions.stop": [Call(RUN, "/jobinfo/{job}/stop", {})],
    "job_actions.run": confirmed(RUN, "/jobinfo/{job}/run") + confirmed(RUN, "/jobinfo/{job}/run?log={log}"),
    "parameter_previews.of_run": [Call(RUN, "/jobinfo/{job}/parameter-preview", {"executor_param": "x"})],
    "run_once.show": [Call(VIEW, f"/jobinfo/{{job}}/run/{{job}}.{'1' * 13}.{'0' * 32}")],
    "run_once.withdraw": confirmed(RUN, f"/jobinfo/{{job}}/run/{{job}}.{'1' * 13}.{'0' * 32}/withdraw"),
    "job_actions.kill": confirmed(RUN, "/jobinfo/{job}/kill"),
    "job_actions.remove": confirmed(EDIT, "/jobinfo/{job}/delete"),
    "job_bulk.bulk": [
        call
        for needs, act in (
            (RUN, "start"),
            (RUN, "stop"),
            (RUN, "run"),
            (EDIT, "move"),
            (EDIT, "tag"),
            (EDIT, "untag"),
            (EDIT, "delete"),
        )
        for call in bulk(needs, act)
    ],
    "favourites.star": [
        Call(VIEW, "/jobinfo/favourite", {"add": "{job}"}),
        Call(VIEW, "/jobinfo/favourite", {"remove": "{job}"}),
    ],
    "job_transfer.export": [
        *listed(VIEW, "/jobinfo/export", "/jobinfo/export?jobGroup={group}"),
        Call(VIEW, "/jobinfo/export?id={job}"),
    ],
    "job_transfer.import_file": [
        *listed(EDIT, "/jobinfo/import"),
        Call(
            EDIT,
            "/jobinfo/import",
            {"apply": "1", "text": json.dumps({"format": 1, "jobs": [IMPORTED | {"appname": "{app_name}"}]})},
        ),
    ],
    "glue.edit": confirmed(WRITE, "/jobcode?jobId={code}", **CODE)
    + confirmed(WRITE, "/jobcode?jobId={code}&version={version}", **CODE),
    "glue_versions.diff": [Call(WRITE, "/jobcode/diff?jobId={code}&old={version}&new=0")],
    "glue_versions.restore": confirmed(WRITE, "/jobcode/restore?jobId={code}&version={version}", **CODE),
    "job_versions.show": [Call(VIEW, "/jobinfo/{job}/versions/1")],
    "job_versions.restore": [Call(EDIT, "/jobinfo/{job}/versions/1/restore", {})],
    "alarm_mutes.mute_job": confirmed(RUN, "/jobinfo/{job}/mute", span="1h"),
    "alarm_mutes.unmute_job": [Call(RUN, "/jobinfo/{job}/unmute", {})],
    "alarm_tests.job": confirmed(EDIT, "/jobinfo/{job}/test-alarm"),
    "scripting_jobs.add": [Call(EDIT, "/jobinfo/add", BEAN | {"jobGroup": "{group}"})],
    "scripting_jobs.update": [Call(EDIT, "/jobinfo/update", BEAN | {"jobGroup": "{group}", "id": "{job}"})],
    "scripting_jobs.start": [Call(RUN, "/jobinfo/start", {"id": "{job}"})],
    "scripting_jobs.stop": [Call(RUN, "/jobinfo/stop", {"id": "{job}"})],
    "scripting_jobs.trigger": [Call(RUN, "/jobinfo/trigger", {"id": "{job}"})],
    "scripting_jobs.remove": [Call(EDIT, "/jobinfo/remove", {"id": "{job}"})],
    "scripting_jobs.save_code": [Call(WRITE, "/jobcode/save", CODE | {"id": "{code}"})],
}
RUNS: dict[str, list[Call]] = {
    "logs.show": [Call(VIEW, "/joblog/{log}")],
    "logs.message": [Call(VIEW, "/joblog/{log}/note")],
    "logs.lines": [Call(VIEW, "/joblog/{log}/lines")],
    "run_compare.compare": [Call(VIEW, "/joblog/{log}/compare?old={log}")],
    "logs.raw": [Call(VIEW, "/joblog/{log}/log.txt")],
    "logs.result": [Call(VIEW, "/joblog/{log}/result.csv")],
    "incidents.show": [Call(VIEW, "/incidents/{incident}")],
    "incidents.acknowledge": [Call(RUN, "/incidents/{incident}/acknowledge", {})],
    "logs.kill": confirmed(RUN, "/joblog/{log}/kill"),
    "log_cleaning.clean": [
        *listed(RUN, "/joblog/clean"),
        Call(RUN, "/joblog/clean", BOUNDS),
        Call(RUN, "/joblog/clean", BOUNDS | {"up_to_id": "999999", "total": "1"}),
        Call(RUN, "/joblog/clean", BOUNDS | {"job_group": "0", "job_id": "{job}", "up_to_id": "999999"}),
    ],
    "scripting_logs.log_detail_cat": [
        Call(VIEW, "/joblog/logDetailCat", {"logId": "{log}", "fromLineNum": "1"})
    ],
    "scripting_logs.log_kill": [Call(RUN, "/joblog/logKill", {"id": "{log}"})],
    "scripting_logs.clear_log": [
        Call(RUN, "/joblog/clearLog", {"jobGroup": "{group}", "jobId": "0", "type": "9"}),
        Call(RUN, "/joblog/clearLog", {"jobGroup": "0", "jobId": "{job}", "type": "9"}),
        Call(RUN, "/joblog/clearLog", {"jobGroup": "{group}", "jobId": "{job}", "type": "9"}),
    ],
}
GROUPS: dict[str, list[Call]] = {
    "group_page.show": [Call(VIEW, "/jobgroup/{group}")],
    "group_graph.show": [Call(VIEW, "/jobgroup/{group}/graph")],
    "group_page.drain": confirmed(RUN, f"/jobgroup/{{group}}/drain?address={INSTANCE}"),
    "group_page.undrain": [Call(RUN, "/jobgroup/{group}/undrain", {"address": INSTANCE})],
    "alarm_mutes.mute_group": confirmed(RUN, "/jobgroup/{group}/mute", span="1h"),
    "alarm_mutes.unmute_group": [Call(RUN, "/jobgroup/{group}/unmute", {})],
    "alarm_tests.group": confirmed(EDIT, "/jobgroup/{group}/test-alarm"),
    "scripting_groups.load_by_id": [Call(VIEW, "/jobgroup/loadById", {"id": "{group}"})],
    "groups.index": listed(ADMIN, "/jobgroup"),
    "groups.add": confirmed(ADMIN, "/jobgroup/new", **GROUP_FORM),
    "groups.edit": confirmed(ADMIN, "/jobgroup/{group}/edit", **GROUP_FORM),
    "groups.end_changeover": confirmed(ADMIN, "/jobgroup/{group}/former-token/end"),
    "groups.remove": confirmed(ADMIN, "/jobgroup/{group}/delete"),
    "groups.show_instances": [Call(ADMIN, "/jobgroup/{group}/nodes")],
    "connect.show_token": [Call(ADMIN, "/connect", {})],
    "connect.add_group": [Call(ADMIN, "/connect/group", {"app_name": "new-app"})],
    "group_checks.test": [Call(ADMIN, "/jobgroup/{group}/test", {})],
    "scripting_groups.page_list": listed(ADMIN, "/jobgroup/pageList"),
    "scripting_groups.save": [Call(ADMIN, "/jobgroup/save", GROUP_BEAN)],
    "scripting_groups.update": [Call(ADMIN, "/jobgroup/update", GROUP_BEAN | {"id": "{group}"})],
    "scripting_groups.remove": [Call(ADMIN, "/jobgroup/remove", {"id": "{group}"})],
}
BLACKOUT = {"kind": "once", "reason": "moved", "afterwards": "skip"}
SECRET = {"name": "NEW_KEY", "secret": "a new secret value"}
RANGE = {"from": "2020-01-01T00:00", "to": "2020-01-02T00:00"}
VARIABLES: dict[str, list[Call]] = {
    "backfills.index": listed(LOGIN, "/backfills", "/backfills?jobId={job}"),
    "backfills.show": [Call(VIEW, "/backfills/{backfill}")],
    "backfill_forms.new": confirmed(RUN, "/backfills/new?job={job}", **RANGE)
    + [Call(RUN, "/backfills/new?id={log}")],
    "backfill_forms.preview": [Call(RUN, "/backfills/new/list?job={job}", RANGE)],
    "backfill_actions.pause": [Call(RUN, "/backfills/{backfill}/pause", {})],
    "backfill_actions.resume": confirmed(RUN, "/backfills/{backfill}/resume"),
    "backfill_actions.cancel": confirmed(RUN, "/backfills/{backfill}/cancel"),
    "rounds.index": listed(LOGIN, "/rounds", "/rounds?jobId={job}"),
    "rounds.show": [Call(VIEW, "/rounds/{round}")],
    "round_actions.run_missing": confirmed(RUN, "/rounds/{round}/run-missing"),
    "limits.index": listed(LOGIN, "/limits"),
    "limits.show": [Call(VIEW, "/limits/{limit_id}")],
    "limits.of_job": [Call(VIEW, "/limits/job/{job}")],
    "limits.of_group": [Call(VIEW, "/limits/executor/{group}")],
    "limit_forms.add": listed(EDIT, "/limits/new")
    + [
        Call(EDIT, "/limits/new", {"name": "new", "slots": "1", "group": "{group}"}),
        Call(ADMIN, "/limits/new", {"name": "new for all", "slots": "1", "group": "all"}),
    ],
    "limit_forms.edit": confirmed(EDIT, "/limits/{limit_id}/edit", slots="2", group="{group}"),
    "limit_forms.remove": confirmed(EDIT, "/limits/{limit_id}/delete"),
    "calendars.index": listed(LOGIN, "/calendars"),
    "calendars.show": listed(VIEW, "/calendars/{calendar}", "/calendars/{calendar}?job={job}"),
    "calendars.of_job": [Call(VIEW, "/calendars/of-job/{job}")],
    "calendar_forms.add": confirmed(ADMIN, "/calendars/new", name="new calendar", source="none"),
    "calendar_forms.edit": [Call(ADMIN, "/calendars/{calendar}?year=2026", {"days": "2026-01-01,holiday"})],
    "calendar_forms.take_days": confirmed(
        ADMIN, "/calendars/{calendar}/import", source="file", text="2026-01-01,holiday"
    ),
    "calendar_forms.remove": confirmed(ADMIN, "/calendars/{calendar}/delete"),
    "blackouts.index": listed(LOGIN, "/blackouts"),
    "blackouts.add": listed(RUN, "/blackouts/new")
    + [
        Call(RUN, "/blackouts/new", BLACKOUT | {"scope": "group", "group": "{group}"}),
        Call(RUN, "/blackouts/new", BLACKOUT | {"scope": "job", "job": "{job}"}),
        Call(ADMIN, "/blackouts/new", BLACKOUT | {"scope": "all"}),
    ],
    "blackouts.end": confirmed(RUN, "/blackouts/{blackout}/end"),
    "group_switch.off": confirmed(RUN, "/jobgroup/{group}/off", reason="moved", afterwards="skip"),
    "group_switch.on": confirmed(RUN, "/jobgroup/{group}/on"),
    "waiting_runs.start": confirmed(RUN, "/joblog/waiting/w{waiting}/start"),
    "waiting_runs.withdraw": confirmed(RUN, "/joblog/waiting/w{waiting}/withdraw"),
    "waiting_runs.release": confirmed(RUN, "/joblog/{held}/release"),
    "variables.index": listed(
        VIEW, "/variables", "/variables?group={group}", "/variables?name=e&kind=secret"
    ),
    "variables.show": [Call(VIEW, "/variables/{variable}"), Call(VIEW, "/variables/{secret}")],
    "variables.remove": confirmed(EDIT, "/variables/{variable}/delete")
    + confirmed(EDIT, "/variables/{secret}/delete"),
    "variable_forms.add": listed(EDIT, "/variables/new")
    + [
        Call(EDIT, "/variables/new", {"name": "NEW", "value": "1", "group": "{group}"}),
        Call(EDIT, "/variables/new?kind=secret", SECRET | {"group": "{group}"}),
        Call(ADMIN, "/variables/new", {"name": "NEW", "value": "1", "group": "0"}),
        Call(ADMIN, "/variables/new?kind=secret", SECRET | {"group": "0", "allowed": "{group}"}),
    ],
    "variable_forms.edit": confirmed(EDIT, "/variables/{variable}/edit", value="2")
    + confirmed(EDIT, "/variables/{secret}/edit", secret="a new secret value"),
}
INSTALLATION: dict[str, list[Call]] = {
    "alarm_tests.installation": confirmed(ADMIN, "/alarms/test"),
    "alarm_tests.channel": confirmed(ADMIN, "/alarmchannels/{channel}/test"),
    "alarm_inbox.index": listed(LOGIN, "/alarms", "/alarms?jobId={job}", "/alarms?channel={channel}"),
    "alarm_mute_list.index": listed(LOGIN, "/alarms/mutes"),
    "alarm_channels.index": listed(LOGIN, "/alarmchannels"),
    "alarm_channels.add": confirmed(ADMIN, "/alarmchannels/new?kind=webhook", **CHANNEL),
    "alarm_channels.edit": confirmed(ADMIN, "/alarmchannels/{channel}/edit", **CHANNEL),
    "alarm_channels.remove": confirmed(ADMIN, "/alarmchannels/{channel}/delete"),
    "pickers.users": listed(ADMIN, "/pick/users?q="),
    "users.index": listed(ADMIN, "/user"),
    "users.add": confirmed(ADMIN, "/user/new", **USER),
    "users.edit": confirmed(ADMIN, "/user/{user}/edit", role="0"),
    "users.remove": confirmed(ADMIN, "/user/{user}/delete"),
    "weak_passwords.end": confirmed(ADMIN, "/user/{user}/weak-password/end"),
    "weak_passwords.end_all": confirmed(ADMIN, "/user/weak-passwords/end"),
    "users.list_logins": [Call(ADMIN, "/user/{user}/logins")],
    "users.end_login": confirmed(ADMIN, "/user/{user}/logins/{their_login}/end"),
    "users.end_logins": confirmed(ADMIN, "/user/{user}/logins/end"),
    "all_tokens.index": listed(ADMIN, "/user/tokens"),
    "all_tokens.add": confirmed(ADMIN, "/user/tokens/new", **TOKEN),
    "all_tokens.revoke": confirmed(ADMIN, "/user/tokens/{their_token}/revoke"),
    "users.audit": listed(ADMIN, "/user/audit"),
    "scripting_users.page_list": listed(ADMIN, "/user/pageList?role=-1"),
    "scripting_users.add": [Call(ADMIN, "/user/add", USER)],
    "scripting_users.update": [Call(ADMIN, "/user/update", {"id": "{user}", "role": "0"})],
    "scripting_users.remove": [Call(ADMIN, "/user/remove", {"id": "{user}"})],
}
ENDPOINTS = PUBLIC | OF_THE_USER | LISTS | JOBS | RUNS | GROUPS | VARIABLES | INSTALLATION
