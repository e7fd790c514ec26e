"""Addresses that a run by hand is restricted to: each must be one of the job's executor group."""

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.text.input_errors import InputErrors
from app.domain.text.limits import limited_text
from app.domain.text.texts import N_
from app.errors import ForeignValue
from app.models.group import split_addresses
from app.pipeline.group_addresses import find_foreign
from app.store.executors import groups

ADDRESS_LIST_MAX = 20_000


def check_addresses(session: Session, group_id: int, text: str, now_ms: Millis) -> str | None:
    """Return the addresses to restrict a run to, all of the job's group; None for no restriction."""
    addresses = split_addresses(limited_text("addressList", text, ADDRESS_LIST_MAX))
    if not addresses:
        return None
    of_groups = groups.find_groups(session, [group_id])
    foreign = find_foreign(session, {group_id: addresses}, of_groups, now_ms=now_ms).get(group_id, ())
    errors = InputErrors()
    for address in addresses:
        with errors:
            if address in foreign:
                problem = N_(
                    "%(address)s is not an address of this executor group; add it to the group first",
                    address=address,
                )
                raise ForeignValue("addressList", problem)
    errors.raise_all()
    return ",".join(addresses)
