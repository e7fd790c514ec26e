"""Resources of the API."""

from app.api.v1.resources import own_token

RESOURCES = (own_token.resource,)
