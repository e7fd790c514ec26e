"""API: alarms of runs."""

from app.api.v1.cursors import BIG_ID, read_id_cursor, write_cursor
from app.api.v1.endpoint import Call, Resource
from app.api.v1.schemas.alarms import AlarmOut, AlarmQuery, AlarmReasonName, AlarmStateName, TargetOut
from app.api.v1.schemas.base import Listed
from app.domain.enums import AlarmReason, AlarmState
from app.models.alarm import Alarm
from app.services.alarms import alarm_list
from app.services.alarms.channels import OK
from app.store.alarms.listing import AlarmFilter

resource = Resource("alarms", "Alarms of failed and unresolved runs.")
STATES: dict[AlarmStateName, AlarmState] = {
    "waiting": AlarmState.PENDING,
    "sending": AlarmState.SENDING,
    "sent": AlarmState.SENT,
    "recovered": AlarmState.CLOSED,
    "undelivered": AlarmState.FAILED,
    "partly_delivered": AlarmState.PARTLY,
    "no_channel": AlarmState.SILENT,
    "muted": AlarmState.MUTED,
}
_REASONS: dict[str, AlarmReasonName] = {
    AlarmReason.FAILED: "failed",
    AlarmReason.UNRESOLVED: "unresolved",
    AlarmReason.RECOVERED: "recovered",
}
_NAMES = {state: name for name, state in STATES.items()}


@resource.get("/alarms", answer=Listed[AlarmOut], query=AlarmQuery)
def list_alarms(call: Call) -> Listed[AlarmOut]:
    """List the alarms, newest first."""
    query: AlarmQuery = call.query
    alarm_filter = AlarmFilter(
        job_id=query.job_id,
        group_id=query.group_id,
        states=() if query.state is None else [STATES[query.state]],
        from_ms=query.from_ms,
        to_ms=query.to_ms,
    )
    before_id = read_id_cursor(query.cursor, BIG_ID)
    page = alarm_list.list_before(
        call.session, alarm_filter, actor=call.actor, before_id=before_id, limit=query.limit
    )
    cursor = None if page.before_id is None else write_cursor(page.before_id)
    return Listed[AlarmOut](items=[_answer(alarm) for alarm in page.rows], next_cursor=cursor)


def _answer(alarm: Alarm) -> AlarmOut:
    return AlarmOut(
        id=alarm.id,
        job_id=alarm.job_id,
        run_id=str(alarm.log_id),
        reason=_REASONS.get(alarm.reason, "failed"),
        state=_NAMES[AlarmState(alarm.state)],
        attempts=alarm.attempts,
        created_at=alarm.created_ms,
        targets=[
            TargetOut(target=target, problem=None if result == OK else result)
            for target, result in alarm_list.results_of(alarm)
        ],
        mute_id=alarm.mute_id,
    )
