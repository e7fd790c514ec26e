"""Resources of the API."""

from app.api.v1.resources import alarms, audit, channels, drains, glue, groups, instances, jobs, logs, mutes, nodes, own_token, report, runs, schedules, skips, tokens, triggers, users, versions

RESOURCES = (
    alarms.resource,
    audit.resource,
    channels.resource,
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
