"""Alarm coverage: targets of a job's alarms, and mail addresses that get nothing without a mail server."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.alarms.mail_addresses import mails_of
from app.models.group import Group
from app.models.job import Job
from app.services.alarms.targets import Target, all_mails, targets_of
from app.settings.config import Config
from app.store.alarms import channels
from app.store.jobs import listing as job_lists

#: jobs with mail addresses are counted up to this number
COUNTED_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Reach:
    """Targets of a job's alarms by name, and mail addresses that get nothing for want of a mail server."""

    targets: dict[str, Target]
    unmailed: Sequence[str]


def reach_of(session: Session, job: Job, group: Group | None, config: Config) -> Reach:
    """Return where the alarms of a job go."""
    rows = channels.find_for(session, group_ids=[job.job_group], job_ids=[job.id])
    job_channels = [row.channel for row in rows]
    mails = mails_of(job.alarm_email)
    targets = targets_of(config, mails, group.alarm_urls if group else None, channels=job_channels)
    return Reach(targets, [] if config.mail.host else all_mails(mails, job_channels))


def count_unmailed(session: Session, config: Config, *, actor: Actor) -> int:
    """Return how many visible jobs have mail addresses that get nothing for want of a mail server."""
    if config.mail.host:
        return 0
    return job_lists.count_with_mail(session, actor.group_ids(Right.VIEW), limit=COUNTED_MAX)
