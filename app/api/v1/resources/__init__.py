"""Resources of the API."""

from app.api.v1.resources import logs, own_token, runs, skips, tokens, triggers, versions

RESOURCES = (
    logs.resource,
    own_token.resource,
    runs.resource,
    skips.resource,
    tokens.resource,
    triggers.resource,
    versions.resource,
)
