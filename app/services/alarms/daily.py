"""Daily message: whether everything ran on the day before, to the channels that ask for it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, Millis
from app.database.engine import read_scope, transact
from app.domain.completeness.days import interval_of, latest_report_day
from app.domain.completeness.equation import Tally
from app.domain.enums import AlarmState
from app.services.alarms.channels import Message, MessageType
from app.services.alarms.deliveries import LEASE_MS, Delivery, Outcome
from app.services.alarms.targets import targets_of
from app.services.alarms.texts import PREFIX, console_url
from app.services.completeness.report import JobTally, Report, Scope, report
from app.settings.config import Config
from app.store.alarms import channels
from app.store.alarms.channels import ScopedChannel
from app.store.jobs import scheduling as jobs

#: period of the search for channels whose message is due
PERIOD_MS: Millis = MINUTE_MS
#: jobs named in a message
NAMED_JOBS = 20


def take_due(config: Config, *, now_ms: Millis) -> list[Delivery]:
    """Return the messages that are due; of several nodes one gets each."""
    zone = ZoneInfo(config.time_zone)
    day = latest_report_day(now_ms, zone)
    take = partial(channels.take_daily, day=day.isoformat(), now_ms=now_ms, lease_ms=LEASE_MS)
    due = transact(take)
    if not due:
        return []
    with read_scope() as session:
        whole = report(session, Scope(None, 0), interval_of(day, zone), zone=zone, now_ms=now_ms)
        return [_delivery(session, row, attempt, day, whole, config) for row, attempt in due]


def _delivery(
    session: Session, row: ScopedChannel, attempt: int, day: date, whole: Report, config: Config
) -> Delivery:
    channel = row.channel
    rows = [job for job in whole.jobs if row.covers(job.group_id, job.job_id)]
    names = jobs.find_names(session, [job.job_id for job in _incomplete(rows)[:NAMED_JOBS]])
    titles = {job_id: name.job_desc for job_id, name in names.items()}
    return Delivery(
        compose(day, rows, titles, config),
        targets_of(replace(config, alarm_urls=()), [], None, channels=[channel]),
        attempt,
        ("channel", channel.id),
        partial(_store, channel_id=channel.id, day=day.isoformat()),
    )


def _store(session: Session, outcome: Outcome, *, channel_id: int, day: str) -> None:
    if outcome.state is AlarmState.PENDING:
        channels.put_off_daily(session, channel_id, next_ms=outcome.next_ms, counts=outcome.counts)
    else:
        channels.end_daily(session, channel_id, day=day)


def compose(day: date, rows: Sequence[JobTally], titles: dict[int, str], config: Config) -> Message:
    """Write the message about a day, from the numbers of the jobs that a channel is for."""
    total = Tally()
    for job in rows:
        total.add(job.tally)
    wrong = total.unexplained + total.unexpected
    if wrong:
        result = f"{total.unexplained} unexplained, {total.unexpected} unexpected"
    elif total.expected:
        result = f"all {total.expected} due runs accounted for"
    else:
        result = "nothing was due"
    lines = [
        f"Day: {day.isoformat()} ({config.time_zone})",
        f"Due: {total.expected}",
        f"On time: {total.on_time}, late: {total.late}, waiting: {total.waiting}",
        f"Not started: {_by_reason(total.not_started)}",
        f"Skipped: {_by_reason(total.skipped)}",
        f"Unexplained: {total.unexplained}, unexpected: {total.unexpected}",
        f"Finished: {total.finished}, failed: {total.failed}, unresolved: {total.unresolved},"
        f" running: {total.running}",
        f"{console_url(config)}/completeness?from={day.isoformat()}&to={day.isoformat()}",
    ]
    incomplete = _incomplete(rows)
    if incomplete:
        lines += ["", "Not entirely on time:"]
        lines += [
            f"Job {job.job_id} {titles.get(job.job_id, '')}: {_losses(job.tally)}"
            for job in incomplete[:NAMED_JOBS]
        ]
    if len(incomplete) > NAMED_JOBS:
        lines.append(f"… and {len(incomplete) - NAMED_JOBS} more jobs")
    kind = MessageType.FAILURE if wrong else MessageType.SUCCESS
    facts = {"state": "daily", "day": day.isoformat(), "expected": total.expected}
    facts |= {"unexplained": total.unexplained, "unexpected": total.unexpected}
    return Message(f"{PREFIX} {day.isoformat()}: {result}", "\n".join(lines), kind, facts)


def _by_reason(numbers: dict[str, int]) -> str:
    count = sum(numbers.values())
    reasons = ", ".join(f"{reason} {number}" for reason, number in sorted(numbers.items()))
    return f"{count} ({reasons})" if count else "0"


def _incomplete(rows: Sequence[JobTally]) -> list[JobTally]:
    """Return the jobs of which something did not run, in their order."""
    return [job for job in rows if _losses(job.tally)]


def _losses(tally: Tally) -> str:
    """Return what of a job did not run, in words; empty: all ran."""
    numbers = {
        "unexplained": tally.unexplained,
        "unexpected": tally.unexpected,
        "not started": tally.not_started.total(),
        "skipped": tally.skipped.total(),
        "waiting": tally.waiting,
    }
    return ", ".join(f"{number} {term}" for term, number in numbers.items() if number)
