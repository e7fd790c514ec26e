"""Resources of the API."""

from app.api.v1.resources import (
    alarms,
    audit,
    channels,
    drains,
    groups,
    instances,
    logs,
    mutes,
    nodes,
    own_token,
    report,
    runs,
    tokens,
    triggers,
    users,
)
from app.api.v1.resources.jobs import code, glue, jobs, schedules, skips, versions

RESOURCES = (
    alarms.resource,
    audit.resource,
    channels.resource,
    code.resource,
    drains.resource,
    glue.resource,
    groups.resource,
    instances.resource,
    jobs.resource,
    logs.resource,
    mutes.resource,
    nodes.resource,
    own_token.resource,
    report.resource,
    runs.resource,
    schedules.resource,
    skips.resource,
    tokens.resource,
    triggers.resource,
    users.resource,
    versions.resource,
)
