"""Summaries of ended mutes: which channels get one, and those that get only the part about their own jobs."""

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


def delivery_of(session: Session, ended: EndedMute, config: Config) -> Delivery:
    """Return the summary of an ended mute, for the channels of its group and of its failing jobs."""
    group_id, mute = ended.group.id if ended.group else 0, ended.mute
    job_ids = [key for key in ended.failing if not group_id or ended.jobs[key].job_group == group_id]
    found = channels.find_for(session, group_ids=[group_id], job_ids=job_ids)
    urls = ended.group.alarm_urls if ended.group else None
    return Delivery(
        compose_mute_end(ended, config),
        targets_of(config, ended.mails, urls, channels=[each.channel for each in found]),
        mute.attempts,
        ("group", mute.group_id) if mute.group_id else ("job", mute.job_id),
        partial(_store, ended=ended),
        delivered_of(mute.outcome),
        _own_messages(ended, found, group_id, config),
    )


def _store(session: Session, outcome: Outcome, *, ended: EndedMute) -> None:
    """Store the outcome of a summary.

    If at least one target accepted it, recoveries are sent: some mail addresses never work.
    """
    notified, text, lease_until = OK in outcome.results.values(), outcome.text(), outcome.now_ms + LEASE_MS
    if outcome.state is not AlarmState.PENDING:
        muted_alarms.finish(session, ended, notified=notified, outcome=text, lease_until=lease_until)
        return
    muted_alarms.put_off(session, ended, outcome=text, next_ms=outcome.next_ms, counts=outcome.counts)
    if notified:
        alarms.mark_sent(session, ended.mute.id, ended.last_failures, outcome=text, lease_until=lease_until)


def _own_messages(
    ended: EndedMute, found: Sequence[ScopedChannel], group_id: int, config: Config
) -> dict[str, Message]:
    """Return target name -> its message, of those whose destination is for single jobs only."""
    own = {mail_name(address): ended.jobs_of_mail(address) for address in ended.mails}
    destinations, jobs_of = {name: name for name in own}, defaultdict[str, set[int]](set, own)
    everything = {*split_urls(ended.group.alarm_urls if ended.group else None), *config.alarm_urls}
    for each in found:
        theirs = destinations_of(each.channel)
        destinations |= theirs
        for destination in theirs.values():
            jobs_of[destination] |= each.job_ids
        if each.covers(group_id):
            everything.update(theirs.values())
    return {
        name: compose_mute_end(ended.part(jobs_of[destination]), config)
        for name, destination in destinations.items()
        if destination not in everything
    }
