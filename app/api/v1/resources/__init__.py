"""Resources of the API."""

from app.api.v1.resources import drains, glue, groups, instances, jobs, logs, own_token, runs, schedules, skips, tokens, triggers, versions

RESOURCES = (
    drains.resource,
    glue.resource,
    groups.resource,
    instances.resource,
    jobs.resource,
    logs.resource,
    own_token.resource,
    runs.resource,
    schedules.resource,
    skips.resource,
    tokens.resource,
    triggers.resource,
    versions.resource,
)
