"""Summaries of ended mutes: which channels get one, and those that get only the part about their own jobs."""

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.domain.alarms.alarm_urls import split_urls
from app.services.alarms.channels import Message
from app.services.alarms.deliveries import Subject, delivered_of
from app.services.alarms.muted_alarms import EndedMute
from app.services.alarms.targets import destinations_of, mail_name
from app.services.alarms.texts import compose_mute_end
from app.settings.config import Config
from app.store.alarms import channels
from app.store.alarms.channels import ScopedChannel


def subject_of(session: Session, ended: EndedMute, config: Config) -> Subject:
    """Return the summary of an ended mute, with the channels of its group and of its failing jobs."""
    group_id = ended.group.id if ended.group else 0
    job_ids = [key for key in ended.failing if not group_id or ended.jobs[key].job_group == group_id]
    found = channels.find_for(session, group_ids=[group_id], job_ids=job_ids)
    return Subject(
        [],
        None,
        ended.group,
        [],
        delivered_of(ended.mute.outcome),
        ended=ended,
        channels=[each.channel for each in found],
        own=_own_messages(ended, found, group_id, config),
    )


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
