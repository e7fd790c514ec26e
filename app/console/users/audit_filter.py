"""Filters of the change history, read from its URL."""

from dataclasses import dataclass

from flask import request

from app.clock import Millis, now_ms, storable_ms
from app.console.ui.audit_words import OBJECTS, PARTS, sentence_of
from app.console.ui.filters import reader_zone
from app.console.ui.labels import RANGES
from app.console.ui.listing import Chip, chips, whole_number
from app.console.ui.ranges import TimeRange, named_range, read_local
from app.console.ui.sorting import AUDIT, requested_order
from app.console.web.language import _
from app.store.audit import AuditFilter

#: what a part of the actions is filtered by; refusals have a box of their own
_PREFIXES = {
    part if part == "login" else f"{part}.": title for part, title in PARTS.items() if part != "refused"
}


@dataclass(frozen=True, slots=True)
class RequestedEntries:
    """The requested filters as the form shows them."""

    filter: AuditFilter
    range: str
    from_text: str
    to_text: str

    @property
    def actions(self) -> list[tuple[str, str]]:
        """Options of the kind of change; a single action of an address is one more."""
        offered = {prefix: str(title) for prefix, title in _PREFIXES.items()}
        if self.filter.action and self.filter.action not in offered:
            offered[self.filter.action] = self.action_text
        return list(offered.items())

    @property
    def action_text(self) -> str:
        """The chosen kind of change in words."""
        action = self.filter.action
        if action in _PREFIXES or not action:
            return str(_PREFIXES.get(action, ""))
        return sentence_of(action, frozenset(), has_object=False) % {"object": "…"}

    @property
    def chips(self) -> list[Chip]:
        """The active filters."""
        wanted = self.filter
        title = str(OBJECTS.get(wanted.object_type, wanted.object_type))
        limits = [
            ("object", _("Object"), title),
            ("id", _("ID"), str(wanted.object_id or "")),
            ("username", _("User name"), wanted.username),
            ("action", _("Action"), self.action_text),
            ("range", _("Time"), "" if self.range == "all" else str(RANGES[self.range])),
            ("refusals", _("Refusals"), _("only these") if wanted.refusals else ""),
        ]
        return chips(limits)


def requested_entries() -> RequestedEntries:
    """Read the filters; an id counts only with the type of its object."""
    args = request.args
    name = args.get("range", "custom" if "from" in args or "to" in args else "all")
    name = name if name in RANGES else "all"
    texts = (args.get("from", ""), args.get("to", ""))
    bounds = _bounds(name, texts)
    kind = args.get("object", "")
    kind = kind if kind in OBJECTS else ""
    wanted = AuditFilter(
        username=args.get("username", "").strip(),
        action=args.get("action", "").strip(),
        refusals=args.get("refusals") == "1",
        object_type=kind,
        object_id=(whole_number("id", 0) or None) if kind else None,
        from_ms=bounds.from_ms,
        to_ms=bounds.to_ms,
        order=requested_order(AUDIT),
    )
    return RequestedEntries(wanted, name, *texts)


def _bounds(name: str, texts: tuple[str, str]) -> TimeRange:
    if name != "custom":
        return named_range(name, reader_zone(), now_ms=now_ms())
    return TimeRange(*(_bound(text) for text in texts))


def _bound(text: str) -> Millis | None:
    instant_ms = read_local(text, reader_zone()) if text else None
    return None if instant_ms is None else storable_ms(instant_ms)
