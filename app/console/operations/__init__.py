"""Operations: endpoints of monitors and load balancers, without a login; and the reference of the API."""

from app.console.operations import api_reference, health, metrics

MODULES = (api_reference, health, metrics)
