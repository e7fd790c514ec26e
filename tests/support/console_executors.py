"""Helpers of the tests of console executors, for all that need them."""

from app.clock import now_ms
from app.models.registry import Registration
from tests.support.factories import save


def registered(app_name: str, address: str, ago_ms: int = 0, handlers: str | None = None) -> None:
    save(
        Registration(
            registry_group="EXECUTOR",
            registry_key=app_name,
            registry_value=address,
            update_time=now_ms() - ago_ms,
            handlers=handlers,
        )
    )
