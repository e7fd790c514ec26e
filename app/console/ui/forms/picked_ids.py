"""Ids in the field of a picker of many, such as ``1, 2``."""

import re

from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.store.base.paging import ID_MAX


def picked_ids(text: str | None) -> list[int]:
    """Return the ids, each once; what is no id is left out."""
    return list(dict.fromkeys(int(piece) for piece in _pieces(text) if _is_id(piece)))


def id_errors(name: str, text: str | None) -> list[InvalidInput]:
    """Return an error for the first piece of the field ``name`` that is no id, if there is one."""
    return [
        InvalidInput(name, N_('"%(id)s" is not an id', id=piece[:20]))
        for piece in _pieces(text)
        if not _is_id(piece)
    ][:1]


def _pieces(text: str | None) -> list[str]:
    return [piece for piece in re.split(r"[,\s]+", text or "") if piece]


def _is_id(piece: str) -> bool:
    return re.fullmatch(r"[1-9][0-9]{0,9}", piece) is not None and int(piece) <= ID_MAX
