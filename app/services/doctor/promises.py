"""Check of promises: escalations that reach no one. Reads only."""

from sqlalchemy.orm import Session

from app.domain.promises.promise import read_escalation
from app.services.doctor.findings import Findings, NothingFound, check, name_list, warning
from app.store.nodes import diagnosis


@check("promises")
def check_promises(session: Session) -> Findings:
    """Check that the channels of escalations exist."""
    channels = diagnosis.find_channel_names(session)
    missing: dict[str, list[str]] = {}
    for owner, text in diagnosis.find_escalations(session):
        escalation = read_escalation(text)
        if escalation is not None and escalation.channel not in channels:
            missing.setdefault(escalation.channel, []).append(owner)
    for channel, owners in missing.items():
        yield warning(
            f"incidents of {name_list(owners)} are not escalated: there is no alarm channel '{channel}'",
            "add it in the console under Alarms, Channels, or name another one in the job or group",
        )
    yield NothingFound("all escalations have a channel")
