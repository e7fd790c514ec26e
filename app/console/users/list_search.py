"""Search fields of the users and of the change history: filters that can be typed, and a user's name."""

from flask import request

from app.console.ui.audit.words import OBJECTS
from app.console.ui.lists.search import Hint, Search, choice_field, read_names, text_field
from app.console.ui.lists.time_search import range_fields
from app.console.users.audit_filter import PREFIXES, only_refusals
from app.console.web.language import _
from app.store.base.paging import to_id

#: what may be typed for a kind of object beside its title
_OBJECT_WORDS = {"group": ("executor",), "log": ("run",)}


def read_user_search(text: str) -> Search:
    """Return what a text means in the list of users."""
    fields = (
        text_field("username", "name", "user", _("User name")),
        choice_field(
            "role",
            ("role", _("Role")),
            {"0": _("Normal user"), "1": _("Administrator")},
            aliases={"0": ("normal", "user"), "1": ("administrator", "admin")},
        ),
        choice_field("weak", ("password", _("Password")), {"1": _("Weak")}, aliases={"1": ("weak",)}),
    )
    return read_names(text, fields, "username")


def read_entry_search(text: str) -> Search:
    """Return what a text means in the change history; an id counts only with the type of its object."""
    objects = {name: str(title) for name, title in OBJECTS.items()}
    actions = {prefix: str(title) for prefix, title in PREFIXES.items()}
    parts = {prefix: (prefix.rstrip("."),) for prefix in PREFIXES}
    fields = (
        text_field("username", "user", "name", _("User"), _("User name")),
        choice_field("object", ("object", _("Object")), objects, aliases=_OBJECT_WORDS),
        text_field("id", "id", _("ID")),
        choice_field("action", ("action", "change", _("Action")), actions, aliases=parts),
        *range_fields(),
        choice_field(
            "refusals", ("refusals", _("Refusals")), {"1": only_refusals()}, aliases={"1": ("only", "yes")}
        ),
    )
    search = read_names(text, fields, "username")
    has_kind = bool({**request.args, **search.parameters}.get("object"))
    if "id" not in search.parameters or (has_kind and to_id(search.parameters["id"] or "")):
        return search
    hint = Hint(_("“id:” is the number of an object of a kind, as in “object:job id:12”."))
    return Search(search.parameters, "", [*search.hints, hint])
