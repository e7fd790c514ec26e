"""Summaries of ended mutes: the whole one for a group's channels, parts for the channels of single jobs."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from sqlalchemy.orm import Session

from app.domain.alarms.alarm_urls import split_urls
from app.domain.enums import AlarmState
from app.services.alarms import muted_alarms
from app.services.alarms.channels import OK, Message
from app.services.alarms.deliveries import LEASE_MS, Delivery, Outcome, delivered_of
from app.services.alarms.muted_alarms import EndedMute
from app.services.alarms.targets import destinations_of, mail_name, targets_of
from app.services.alarms.texts import compose_mute_end
from app.settings.config import Config
from app.store.alarms import alarms, channels
from app.store.alarms.channels import ScopedChannel


def delivery_of(session: Session, mute_end: EndedMute, config: Config) -> Delivery:
    """Return the summary of an ended mute, for the channels of its group and of its failing jobs."""
    group_id, mute = mute_end.group.id if mute_end.group else 0, mute_end.mute
    job_ids = [key for key in mute_end.failing if not group_id or mute_end.jobs[key].job_group == group_id]
    rows = channels.find_for(session, group_ids=[group_id], job_ids=job_ids)
    urls = mute_end.group.alarm_urls if mute_end.group else None
    return Delivery(
        compose_mute_end(mute_end, config),
        targets_of(config, mute_end.mails, urls, channels=[row.channel for row in rows]),
        mute.attempts,
        ("group", mute.group_id) if mute.group_id else ("job", mute.job_id),
        partial(_store, mute_end=mute_end),
        delivered_of(mute.outcome),
        _partial_messages(mute_end, rows, group_id, config),
    )


def _store(session: Session, outcome: Outcome, *, mute_end: EndedMute) -> None:
    """Store the outcome of a summary.

    If at least one target accepted it, recoveries are sent: some mail addresses never work.
    """
    is_sent, text, lease_until = OK in outcome.results.values(), outcome.text(), outcome.now_ms + LEASE_MS
    if outcome.state is not AlarmState.PENDING:
        muted_alarms.finish(session, mute_end, is_sent=is_sent, outcome=text, lease_until=lease_until)
        return
    muted_alarms.put_off(session, mute_end, outcome=text, next_ms=outcome.next_ms, counts=outcome.counts)
    if is_sent:
        alarms.mark_sent(
            session, mute_end.mute.id, mute_end.last_failures, outcome=text, lease_until=lease_until
        )


def _partial_messages(
    mute_end: EndedMute, rows: Sequence[ScopedChannel], group_id: int, config: Config
) -> dict[str, Message]:
    """Return target name -> its part of the summary, for destinations of single jobs only."""
    jobs_by_mail = {mail_name(address): mute_end.jobs_of_mail(address) for address in mute_end.mails}
    destinations = {name: name for name in jobs_by_mail}
    jobs_of = defaultdict[str, set[int]](set, jobs_by_mail)
    group_urls = split_urls(mute_end.group.alarm_urls if mute_end.group else None)
    full_destinations = {*group_urls, *config.alarm_urls}
    for row in rows:
        channel_destinations = destinations_of(row.channel)
        destinations |= channel_destinations
        for destination in channel_destinations.values():
            jobs_of[destination] |= row.job_ids
        if row.covers(group_id):
            full_destinations.update(channel_destinations.values())
    return {
        name: compose_mute_end(mute_end.part(jobs_of[destination]), config)
        for name, destination in destinations.items()
        if destination not in full_destinations
    }
