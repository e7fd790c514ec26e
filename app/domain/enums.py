"""Enums of the tables and the wire, with XXL-JOB's own names."""

from enum import IntEnum, StrEnum


class ScheduleType(StrEnum):
    """How the next time of a job is computed (`xxl_job_info.schedule_type`)."""

    NONE = "NONE"
    CRON = "CRON"
    FIX_RATE = "FIX_RATE"
    FIX_DELAY = "FIX_DELAY"
    AT = "AT"


class MisfireStrategy(StrEnum):
    """What to do with instants that are more than five seconds late."""

    DO_NOTHING = "DO_NOTHING"
    FIRE_ONCE_NOW = "FIRE_ONCE_NOW"
    #: each missed instant runs, one after the other; unknown to XXL-JOB
    RUN_ALL = "RUN_ALL"


class RouteStrategy(StrEnum):
    """How an address of a group is chosen."""

    FIRST = "FIRST"
    LAST = "LAST"
    ROUND = "ROUND"
    RANDOM = "RANDOM"
    CONSISTENT_HASH = "CONSISTENT_HASH"
    LEAST_FREQUENTLY_USED = "LEAST_FREQUENTLY_USED"
    LEAST_RECENTLY_USED = "LEAST_RECENTLY_USED"
    FAILOVER = "FAILOVER"
    BUSYOVER = "BUSYOVER"
    SHARDING_BROADCAST = "SHARDING_BROADCAST"


class BlockStrategy(StrEnum):
    """What an executor does with a run if an earlier run of the job is still busy."""

    SERIAL_EXECUTION = "SERIAL_EXECUTION"
    DISCARD_LATER = "DISCARD_LATER"
    COVER_EARLY = "COVER_EARLY"


class GlueType(StrEnum):
    """Run mode: the kind of code a job runs."""

    BEAN = "BEAN"
    GLUE_GROOVY = "GLUE_GROOVY"
    GLUE_SHELL = "GLUE_SHELL"
    GLUE_PYTHON = "GLUE_PYTHON"
    GLUE_PHP = "GLUE_PHP"
    GLUE_NODEJS = "GLUE_NODEJS"
    GLUE_POWERSHELL = "GLUE_POWERSHELL"


class TriggerType(StrEnum):
    """Why a fire exists (`xxl_job_fire.trigger_type`)."""

    CRON = "CRON"
    MISFIRE = "MISFIRE"
    MANUAL = "MANUAL"
    PARENT = "PARENT"
    RETRY = "RETRY"
    API = "API"
    #: the runs that its job comes after have ended
    AFTER = "AFTER"
    #: a past instant that a user has asked for
    BACKFILL = "BACKFILL"


class NotStarted(StrEnum):
    """Why no executor took a run (`xxl_job_log.not_started`)."""

    REFUSED = "refused"
    NO_INSTANCE = "no_instance"
    DRAINED = "drained"
    #: by the block strategy *Discard later*
    OVERLAP = "overlap"
    PARAMETER = "parameter"


class TriggerStatus(IntEnum):
    """Whether the schedule of a job is on."""

    STOPPED = 0
    RUNNING = 1


class EndReason(StrEnum):
    """Why a span of a job's history ended (`xxl_job_span.end_reason`)."""

    CHANGED = "changed"
    DELETED = "deleted"
    RESTORED = "restored"
    #: by another program on the database
    OUTSIDE = "outside"


class FireState(StrEnum):
    """State of a fire between its scan and its result (docs/reference/pipeline.md, section 8)."""

    PENDING = "PENDING"
    #: due, and its round is not complete
    GATED = "GATED"
    #: due, and a limit has no slot for it
    WAITING = "WAITING"
    ROUTING = "ROUTING"
    SENDING = "SENDING"
    ACCEPTED = "ACCEPTED"
    UNKNOWN = "UNKNOWN"
    #: its run ended as unresolved and may still be running: it holds its slots
    HELD = "HELD"


#: states of fires that are due and wait for something in the console
HELD_BACK = (FireState.GATED, FireState.WAITING)
#: states that only fires of jobs with limits or predecessors have, before and after their run: no load of an
#: instance
APART = (*HELD_BACK, FireState.HELD)
#: states of fires whose run no executor is known to have
NOT_OUT = (FireState.PENDING, *APART)


class KillReason(IntEnum):
    """Whether a run was killed (`xxl_job_log.killed`)."""

    NO = 0
    BY_USER = 1
    #: for a newer run of its job, by `when_full`; set before the kill
    REPLACED = 2
    #: the same, and its executor has confirmed it
    CONFIRMED = 3


class LimitKind(StrEnum):
    """What a limit counts (`xxl_job_limit.kind`)."""

    JOB = "job"
    GROUP = "group"
    NAMED = "named"


class WhenFull(StrEnum):
    """What to do with a run for which a limit has no slot (`xxl_job_info.when_full`)."""

    WAIT = "wait"
    #: skip the new run
    SKIP = "skip"
    #: skip those that wait already
    NEWEST = "newest"
    #: end the one that is running
    REPLACE = "replace"


class Delivery(StrEnum):
    """Delivery policy: whether a run of unknown fate may be sent again."""

    AUTO = "auto"
    AT_MOST_ONCE = "at_most_once"
    AT_LEAST_ONCE = "at_least_once"


class AddressType(IntEnum):
    """Whether the registry or a user maintains the address list of a group."""

    AUTOMATIC = 0
    MANUAL = 1


class AlarmStatus(IntEnum):
    """`xxl_job_log.alarm_status`."""

    NOT_EXAMINED = 0
    LOCKED = -1
    NOT_NEEDED = 1
    SENT = 2
    FAILED = 3


class Role(IntEnum):
    """`xxl_job_user.role`."""

    NORMAL = 0
    ADMIN = 1


class ParamForm(IntEnum):
    """Form of the parameter stored with a fire or a run."""

    #: it is what is sent
    TEXT = 0
    #: a template whose placeholders are filled in
    TEMPLATE = 1


class TriggerCode(IntEnum):
    """`xxl_job_log.trigger_code`: outcome of the sending."""

    NONE = 0
    ACCEPTED = 200
    REFUSED = 500
    UNRESOLVED = 504


class HandleCode(IntEnum):
    """`xxl_job_log.handle_code`: result reported by the executor."""

    NONE = 0
    SUCCESS = 200
    FAIL = 500
    TIMEOUT = 502


class RegistryGroup(StrEnum):
    """`xxl_job_registry.registry_group`."""

    EXECUTOR = "EXECUTOR"
    ADMIN = "ADMIN"


class NodeKind(StrEnum):
    """`xxl_job_node.kind`: which of our processes a node is."""

    CONSOLE = "console"
    WORKERS = "workers"


class AlarmReason(StrEnum):
    """`xxl_job_alarm.reason`."""

    FAILED = "failed"
    UNRESOLVED = "unresolved"
    #: no failure: the job has succeeded since its alarms
    RECOVERED = "recovered"


class AlarmState(StrEnum):
    """`xxl_job_alarm.state`."""

    PENDING = "PENDING"
    SENDING = "SENDING"
    SENT = "SENT"
    #: no target accepted it
    FAILED = "FAILED"
    #: some targets accepted it; the others were given up
    PARTLY = "PARTLY"
    #: not sent: the job has no channel
    SILENT = "SILENT"
    #: not sent: the job or its group was muted
    MUTED = "MUTED"
    #: sent, and the recovery has been announced
    CLOSED = "CLOSED"


class WeakPassword(IntEnum):
    """What is known of a user's password (`xxl_job_user.weak_password`)."""

    #: not known to be common
    NO = 0
    #: common: browsers must change it, scripts still log in
    GRACE = 1
    #: common, and refused to scripts as well
    REFUSED = 2


class PromiseKind(StrEnum):
    """What a job promises (`xxl_job_promise.kind`)."""

    STARTS_WITHIN = "starts_within"
    FINISHES_WITHIN = "finishes_within"
    FINISHES_BY = "finishes_by"
    SUCCEEDS_EVERY = "succeeds_every"
    TAKES_AT_MOST = "takes_at_most"
    TAKES_AT_LEAST = "takes_at_least"
    TAKES_USUAL_TIMES = "takes_usual_times"
    FAILS_AT_MOST = "fails_at_most"


class PromiseState(StrEnum):
    """Whether a promise was kept the last time."""

    BROKEN = "broken"
    #: neither kept nor broken yet
    NEW = "new"
    KEPT = "kept"


class IncidentState(StrEnum):
    """State of an incident (`xxl_job_incident.state`)."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    #: its promises are kept again
    KEPT_AGAIN = "kept_again"
    #: its job or its promises were removed
    WITHDRAWN = "withdrawn"


class MessageStep(StrEnum):
    """What a message about an incident says (`xxl_job_incident_message.step`)."""

    OPENED = "opened"
    ESCALATED = "escalated"
    KEPT_AGAIN = "kept_again"
