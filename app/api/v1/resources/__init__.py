"""Resources of the API."""

from app.api.v1.resources import own_token, versions

RESOURCES = (
    own_token.resource,
    versions.resource,
)
