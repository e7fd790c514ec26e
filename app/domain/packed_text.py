"""Translatable texts inside JSON: stored by message id and parameters, translated when they are shown."""

from collections.abc import Mapping

from app.domain.schedules.cron.fields import InvalidCronExpression
from app.domain.text.texts import Text

MSGID, PARAMS = "msgid", "params"


def pack(value: object) -> object:
    """Return a value that ``json.dumps`` accepts: a ``Text`` becomes an object, others a ``str``."""
    if isinstance(value, InvalidCronExpression):
        value = value.message
    if isinstance(value, Text):
        return {MSGID: value.msgid, PARAMS: {name: pack(param) for name, param in value.params.items()}}
    if isinstance(value, Mapping):
        return {str(name): pack(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [pack(member) for member in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def unpack(value: object) -> object:
    """Return what ``pack`` was given; tuples come back as lists."""
    if isinstance(value, Mapping):
        if set(value) == {MSGID, PARAMS}:
            return Text(str(value[MSGID]), {name: unpack(param) for name, param in value[PARAMS].items()})
        return {name: unpack(member) for name, member in value.items()}
    return [unpack(member) for member in value] if isinstance(value, list) else value
