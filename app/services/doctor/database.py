"""Checks in the database: server, clock, nodes, runs, passwords and widths of columns. Reads only."""

from collections.abc import Collection

from sqlalchemy.orm import Session

from app.clock import DAY_MS, MINUTE_MS, SECOND_MS, Millis, now_ms
from app.database.dialects.choice import dialect_of
from app.database.engine import ENGINE_POOL
from app.domain.access import stored_passwords
from app.domain.enums import NodeKind, WeakPassword
from app.domain.runs.log_copies import UNLIMITED
from app.domain.schedules.time_zones import differ
from app.domain.text.texts import counted
from app.errors import NotConfigured
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.node import NODE_DEAD_MS, SKEW_MAX_MS, Node
from app.services.accounts import passwords, weak_passwords
from app.services.backups import commit_loss
from app.services.doctor.findings import (
    Finding,
    Findings,
    NothingFound,
    check,
    fine,
    name_list,
    problem,
    warning,
)
from app.services.doctor.host import stored_tokens
from app.services.operations.readiness import find_silence, find_unclaimed
from app.settings.config import Config
from app.settings.home import ADMIN, PASSWORD_FILE
from app.settings.sealing import sealer
from app.store.accounts import audit, users
from app.store.base.text_widths import find_attributes, find_widths
from app.store.fires.logs import COPIES
from app.store.nodes import diagnosis
from app.store.nodes import nodes as node_store
from app.store.pickers import overview
from executor_client.wire.version import VERSION

#: most connections of the workers of a node: one for each of their threads that uses the database
OF_WORKERS = 20
#: those of a node for single statements: one for the console's heartbeat, seven for loops of the workers
OF_SINGLE = 8
#: connections left for other programs
SPARE = 10
#: passwords that installations of XXL-JOB come with
DEFAULT_PASSWORDS = ("123456", "admin")
#: administrators whose password is compared with these, 50 ms each
ADMINS_MAX = 20
UNRESOLVED_MAX = 100
#: a settling is reported for so long
SETTLED_MS: Millis = 7 * DAY_MS
#: a fire that waits longer shows that runs are late
LATE_MS: Millis = MINUTE_MS
#: table -> columns with copies of those of jobs
COPIED = {JobLog.__tablename__: COPIES, Fire.__tablename__: ("executor_param",)}


@check("database")
def check_server(session: Session, config: Config, safe_url: str) -> Findings:
    """Check the connections of the database, and name it; ``safe_url`` is its URL without the password."""
    version = diagnosis.server_version(session)
    product = dialect_of(session).product(version)
    limit = diagnosis.connections_max(session)
    nodes = max(len({node.name for node in _live(session)}), 1)
    total = nodes * (ENGINE_POOL + config.threads + OF_WORKERS + OF_SINGLE) + SPARE
    if limit is not None and limit < total:
        yield warning(
            f"the server accepts {limit} connections, {counted(nodes, 'node')} may open {total}",
            f"set max_connections of the server to {total} or more, or lower XXL_JOB_THREADS",
        )
    yield fine(f"{product} {version} at {safe_url}")


@check("clock")
def check_clock(session: Session) -> Findings:
    """Compare this host's clock with the database's, and those of the nodes as they report them."""
    before = now_ms()
    theirs = node_store.database_now_ms(session)
    names = [
        f"{node.name} ({node.kind}) by {node.skew_ms} ms"
        for node in _live(session)
        if abs(node.skew_ms) > SKEW_MAX_MS
    ]
    if names:
        yield problem(
            f"clocks differ from the database's, so workers do not schedule, and consoles plan for wrong"
            f" times: {name_list(names)}",
            "set their clocks; run chrony or timesyncd on all hosts",
        )
    if theirs is None:
        yield fine("SQLite has no clock of its own to compare with")
        return
    skew = (before + now_ms()) // 2 - theirs
    if abs(skew) > SKEW_MAX_MS:
        yield problem(
            f"this host's clock differs from the database's by {skew} ms, more than {SKEW_MAX_MS} ms",
            "set the clock; run chrony or timesyncd on both hosts",
        )
    else:
        yield fine(f"{abs(skew)} ms {'ahead of' if skew >= 0 else 'behind'} the database's")


@check("nodes")
def check_nodes(session: Session, config: Config) -> Findings:
    """Check which nodes are alive, their versions and zones, and which ended out of order in the last day."""
    at_ms = now_ms()
    recent = node_store.find_nodes(session, seen_after_ms=at_ms - DAY_MS)
    live = _live(session)
    yield from _check_services(session, {node.kind for node in live}, at_ms)
    alive = {(node.name, node.kind) for node in live}
    dead = [f"{node.name} ({node.kind})" for node in recent if (node.name, node.kind) not in alive]
    if dead:
        yield warning(
            f"nodes that did not stop in order in the last day and are not alive: {name_list(dead)}",
            "start them again; one that is gone for good is forgotten after a day",
        )
    other_nodes = [f"{node.name} ({node.kind}): {node.version}" for node in live if node.version != VERSION]
    if other_nodes:
        yield warning(
            f"nodes of another version than this program ({VERSION}): {name_list(other_nodes)}",
            "end the upgrade: restart the services of these nodes",
        )
    abroad = [
        f"{node.name} ({node.kind}): {node.time_zone}"
        for node in live
        if node.time_zone and differ(node.time_zone, config.time_zone, now_ms=at_ms)
    ]
    if abroad:
        yield problem(
            f"nodes in another time zone than this program ({config.time_zone}): {name_list(abroad)}",
            "set XXL_JOB_TIMEZONE to the same value on all nodes, and restart their services",
        )
    if live:
        names = [f"{node.name} ({node.kind})" for node in live]
        yield fine(f"{len(live)} alive: {name_list(names)}")


def _check_services(session: Session, live: Collection[str], at_ms: Millis) -> Findings:
    """Check that a scheduler scans, and that nodes of both kinds are alive; ``live`` are those that are."""
    silence = find_silence(session, now_ms=at_ms)
    if NodeKind.WORKERS not in live and silence is None and _is_a_monitor_silent(session):
        yield problem(
            "no workers process sends heartbeats, though a scheduler scans: no alarms are sent",
            "systemctl status xxl-job-workers; if it runs, restart it: its monitor hangs",
        )
    elif NodeKind.WORKERS not in live:
        yield _down(NodeKind.WORKERS, "xxl-job-workers", "nothing is scheduled")
    elif silence is not None:
        yield problem(
            silence.text,
            "set clocks that are wrong; if none is: journalctl -u xxl-job-workers -n 20, and restart it",
        )
    if NodeKind.CONSOLE not in live:
        yield _down(NodeKind.CONSOLE, "xxl-job-console", "executors cannot register or report results")


def _is_a_monitor_silent(session: Session) -> bool:
    """Whether a scheduler has scanned after its node's heartbeats ended; a killed node ends both at once."""
    nodes = node_store.find_nodes(session, seen_after_ms=0)
    return any(node.scanned_ms - node.heartbeat_ms > NODE_DEAD_MS for node in nodes)


def _down(kind: NodeKind, unit: str, effect: str) -> Finding:
    return problem(
        f"no {kind} process is alive: {effect}",
        f"systemctl start {unit}; if it ends: journalctl -u {unit} -n 20; without services: duetime up",
    )


def _live(session: Session) -> list[Node]:
    """Return the nodes with a heartbeat in the last seconds."""
    at_ms = now_ms()
    nodes = node_store.find_nodes(session, seen_after_ms=at_ms - DAY_MS)
    return [node for node in nodes if node.last_seen_ms(at_ms) >= at_ms - 2 * NODE_DEAD_MS]


@check("runs")
def check_runs(session: Session) -> Findings:
    """Check for unresolved runs, and for runs that wait to be sent."""
    at_ms = now_ms()
    unknown_runs = overview.find_unresolved(
        session, overview.find_open_runs(session, None), limit=UNRESOLVED_MAX
    )
    if unknown_runs:
        count = f"{UNRESOLVED_MAX} or more" if len(unknown_runs) == UNRESOLVED_MAX else str(len(unknown_runs))
        ids = name_list([str(log.id) for log in unknown_runs])
        yield warning(
            f"{count} unresolved (contact lost, outcome unknown), newest first: {ids}",
            "look at each in the console under Logs, and run its job again if needed",
        )
    waiting, oldest_ms = overview.oldest_waiting_ms(session, None, now_ms=at_ms)
    if delay := find_unclaimed(session, now_ms=at_ms):
        yield problem(delay.text, "journalctl -u xxl-job-workers -n 50 shows why no claim succeeds")
    elif oldest_ms is not None and at_ms - oldest_ms > LATE_MS:
        yield warning(
            f"{waiting} due and not sent yet, the oldest for {(at_ms - oldest_ms) // SECOND_MS} s",
            "see nodes, clock and executors; the page of a run shows why it waits",
        )
    yield NothingFound("none unresolved, none waiting")


@check("commits")
def check_commits(session: Session, config: Config) -> Findings:
    """Check that the database has the runs that were sent from here, and that none were lost lately."""
    highest_id = commit_loss.known_as_sent(session, config)
    since_ms = now_ms() - SETTLED_MS
    entries = audit.find_recent(session, (commit_loss.ACTION,), since_ms=since_ms, limit=1)
    if commit_loss.is_behind(session, highest_id):
        yield problem(
            f"the database lacks its last commits: run {highest_id} was sent, and would be given again",
            "restore a database without this loss, or let the workers or `duetime settle` settle it",
        )
    elif entries:
        yield warning(
            "the database has lost commits in the last week and was settled"
            f" {counted((now_ms() - entries[0].at_ms) // MINUTE_MS, 'minute')} ago",
            "run again what is missing; make standbys synchronous, see docs/reference/operations.md",
        )
    yield NothingFound("no run that was sent is missing")


@check("token")
def check_token_of_nodes(session: Session, config: Config) -> Findings:
    """Compare the access token with that of the node that was started last: executors have that one."""
    try:
        prints = {sealer().fingerprint(token) for token in stored_tokens(config)}
        node = node_store.find_last_started(session, key_fingerprint=sealer().key_fingerprint)
    except (OSError, NotConfigured):  # There is no token or no key, which is a finding of its own.
        return
    if node is not None and not prints & set(node.token_fingerprint.split(",")):
        yield problem(
            f"the node that was started last, {node.name} ({node.kind}), had another access token",
            "set the token that executors have: XXL_JOB_ACCESS_TOKEN, or the file access_token of its home",
        )


@check("passwords")
def check_first_password(session: Session, config: Config) -> Findings:
    """Compare the stored first password with that of its user."""
    path = config.home / PASSWORD_FILE
    try:
        password = path.read_text(encoding="utf-8").strip()
    except OSError:
        return
    user = users.find_by_name(session, ADMIN)
    if user is not None and passwords.verify(user.password, password):
        yield warning(
            f"the first password of {ADMIN} is still valid, and in {path}",
            f"log in as {ADMIN} and choose another password; the file is deleted then",
        )
    else:
        yield warning(f"the password in {path} is not valid", f"delete {path}")


@check("passwords")
def check_passwords(session: Session) -> Findings:
    """Check for users with a default or a common password."""
    defaults = [
        name
        for name, password_hash, mark in diagnosis.find_admins(session, limit=ADMINS_MAX)
        # This program accepts no common password, and marks those that it finds at a login.
        if (stored_passwords.is_adopted(password_hash) or mark != WeakPassword.NO)
        and any(passwords.verify(password_hash, password) for password in DEFAULT_PASSWORDS)
    ]
    if defaults:
        yield problem(
            f"administrators with the default password of XXL-JOB: {name_list(defaults)}",
            f"choose another one now: duetime users reset-password {defaults[0]} --local",
        )
    weak = weak_passwords.count(session)
    if weak:
        yield problem(
            f"scripts still log in with common passwords of {counted(weak, 'user')}",
            "give these scripts other ones; then refuse common passwords to scripts in the list of users",
        )
    yield NothingFound("no administrator has a default one, no user a common one")


@check("columns")
def check_widths(session: Session) -> Findings:
    """Compare the columns with copies of texts of jobs with those of the jobs, which users widen."""
    of_jobs, dialect = find_widths(session, Job.__tablename__), dialect_of(session)
    narrow = [
        (table, name, of_jobs.get(name, UNLIMITED))
        for table, names in COPIED.items()
        for widths in [find_widths(session, table)]
        for name in names
        if widths.get(name, UNLIMITED).characters < of_jobs.get(name, UNLIMITED).characters
    ]
    for table, name, width in narrow:
        statement = dialect.widening(table, name, characters=width.characters, octets=width.octets)
        attributes = find_attributes(session, table, name)
        yield warning(
            f"{table}.{name} is narrower than {Job.__tablename__}.{name}: longer texts are cut there",
            f"{statement}{attributes}; then restart console and workers",
        )
    yield NothingFound("those with copies of job texts are as wide as the jobs'")
