"""Operations: what monitors and load balancers read, without a login; and the reference of the API."""

from app.console.operations import api_reference, health, metrics

MODULES = (api_reference, health, metrics)
