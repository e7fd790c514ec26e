"""Resources of the API."""

from app.api.v1.resources import own_token, tokens, versions

RESOURCES = (
    own_token.resource,
    tokens.resource,
    versions.resource,
)
