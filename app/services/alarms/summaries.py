"""Summaries of ended mutes: which channels get one, and those that get only the part about their own jobs."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.config import Config
from app.services.alarms.channels import Message
from app.services.alarms.deliveries import Subject, delivered_of
from app.services.alarms.muted_alarms import EndedMute
from app.services.alarms.targets import mail_name, names_of
from app.services.alarms.texts import compose_mute_end
from app.store import channels
from app.store.channels import ScopedChannel


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
    """Return target name -> its message, of those that concern single jobs only."""
    jobs_of = {mail_name(address): ended.jobs_of_mail(address) for address in ended.mails}
    for each in found:
        for name in names_of(each.channel):
            jobs_of[name] = jobs_of.get(name, set()) | each.job_ids
    everything = {name for each in found if each.covers(group_id) for name in names_of(each.channel)}
    return {
        name: compose_mute_end(ended.part(job_ids), config)
        for name, job_ids in jobs_of.items()
        if name not in everything
    }
