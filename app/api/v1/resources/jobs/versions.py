"""API: versions of a job's fields."""

from typing import Any

from app.api.v1.cursors import read_id_cursor, write_cursor
from app.api.v1.endpoint import Call, Resource
from app.api.v1.schemas.base import Listed, ListQuery
from app.api.v1.schemas.jobs import FieldChange, VersionListed, VersionOut
from app.clock import now_ms
from app.domain.access.permissions import Right
from app.domain.jobs.members import MEMBER_OF_ERROR
from app.services.jobs import version_history
from app.services.jobs.version_history import KeptVersion

resource = Resource(
    "versions",
    "Versions of a job's fields. Each change makes one; the newest 500 of a job are kept.",
    MEMBER_OF_ERROR,
)


@resource.get("/jobs/<int:job_id>/versions", answer=Listed[VersionListed], query=ListQuery)
def list_versions(call: Call, job_id: int) -> Listed[VersionListed]:
    """List the versions of a job, the newest first."""
    versions, has_older = version_history.list_versions(
        call.session,
        job_id,
        actor=call.actor,
        limit=call.query.limit,
        before=read_id_cursor(call.query.cursor),
    )
    return Listed[VersionListed](
        items=[VersionListed(**_members(version)) for version in versions],
        next_cursor=write_cursor(versions[-1].number) if has_older else None,
    )


@resource.get("/jobs/<int:job_id>/versions/<int:number>", answer=VersionOut)
def get_version(call: Call, job_id: int, number: int) -> VersionOut:
    """Return a version of a job with all its fields."""
    return _version(version_history.get_version(call.session, job_id, number, actor=call.actor))


@resource.post("/jobs/<int:job_id>/versions/<int:number>/restore", answer=VersionOut, right=Right.EDIT)
def restore_version(call: Call, job_id: int, number: int) -> VersionOut:
    """Give a job the fields of a version, with all checks of a change.

    Returns the newest version, which is a new one unless the job has these fields already.
    """
    version_history.restore_version(
        call.session,
        job_id,
        number,
        actor=call.actor,
        clock=now_ms,
        readable_by_java=call.config.shared_with_java,
    )
    newest, _has_older = version_history.list_versions(call.session, job_id, actor=call.actor, limit=1)
    return _version(newest[0])


def _version(version: KeptVersion) -> VersionOut:
    return VersionOut(**_members(version), fields=dict(version.fields))


def _members(version: KeptVersion) -> dict[str, Any]:
    changes = version.changes
    return {
        "number": version.number,
        "changed_at": version.at_ms,
        "username": version.username,
        "source": version.source,
        "changes": None
        if changes is None
        else [FieldChange(field=name, old=old, new=new) for name, (old, new) in changes.items()],
    }
