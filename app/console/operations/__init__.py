"""Operations: what monitors and load balancers read. No page; none needs a login."""

from app.console.operations import health, metrics

MODULES = (health, metrics)
