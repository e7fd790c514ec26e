"""Change history filters from the query string."""

from dataclasses import dataclass

from flask import request

from app.clock import now_ms
from app.console.ui.audit.sentences import PARTS
from app.console.ui.audit.words import OBJECTS, sentence_of
from app.console.ui.filters import reader_zone
from app.console.ui.lists.listing import Chip, chips, whole_number
from app.console.ui.lists.ranges import range_text, requested_range
from app.console.ui.lists.sorting import AUDIT, requested_order
from app.console.web.language import _, lazy_pgettext
from app.store.accounts.audit import AuditFilter

#: what a part of the actions is filtered by; refusals have a box of their own
PREFIXES = {
    part if part == "login" else f"{part}.": title for part, title in PARTS.items() if part != "refused"
}


def only_refusals() -> str:
    """Return the value of the filter by refusals in words."""
    return str(lazy_pgettext("refusals", "only"))


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
        options = {prefix: str(title) for prefix, title in PREFIXES.items()}
        if self.filter.action and self.filter.action not in options:
            options[self.filter.action] = self.action_text
        return list(options.items())

    @property
    def action_text(self) -> str:
        """The chosen kind of change in words."""
        action = self.filter.action
        if action in PREFIXES or not action:
            return str(PREFIXES.get(action, ""))
        return sentence_of(action, frozenset(), has_object=False) % {"object": "…"}

    @property
    def chips(self) -> list[Chip]:
        """The active filters."""
        filter_ = self.filter
        title = str(OBJECTS.get(filter_.object_type, filter_.object_type))
        span = range_text(self.range, self.from_text, self.to_text)
        limits = [
            ("object", _("Object"), title),
            ("id", _("ID"), str(filter_.object_id or "")),
            ("username", _("User name"), filter_.username),
            ("action", _("Action"), self.action_text),
            ("range", _("Time"), "" if self.range == "all" else span),
            ("refusals", _("Refusals"), only_refusals() if filter_.refusals else ""),
        ]
        return chips(limits)


def requested_entries() -> RequestedEntries:
    """Read the filters; an id counts only with the type of its object."""
    args = request.args
    span = requested_range("all", reader_zone(), now_ms=now_ms())
    kind = args.get("object", "")
    kind = kind if kind in OBJECTS else ""
    filter_ = AuditFilter(
        username=args.get("username", "").strip(),
        action=args.get("action", "").strip(),
        refusals=args.get("refusals") == "1",
        object_type=kind,
        object_id=(whole_number("id", 0) or None) if kind else None,
        from_ms=span.bounds.from_ms,
        to_ms=span.bounds.to_ms,
        order=requested_order(AUDIT),
    )
    return RequestedEntries(filter_, span.name, span.from_text, span.to_text)
