"""Console as a door of the matrix: pages, forms and the scripting interface, with logins."""

import itertools
from typing import Any

from flask import Flask
from werkzeug.test import TestResponse

from app.domain.access.permissions import Right
from app.settings.home import access_tokens
from tests.security import places
from tests.security.endpoints import ENDPOINTS, Call
from tests.security.places import NOWHERE, Caller, Meaning, Place, filled, has_object, make_place, owned_by
from tests.support.console import Console, add_group, add_user
from tests.support.security import DESTRUCTIVE

_numbers = itertools.count(1)


class ConsoleDoor:
    """Every endpoint of the console.

    A normal user has the rights of its role on its own group, and every right on another group, so that only
    the object's own group decides; an outsider has no group at all.
    """

    #: roles that have to log in first
    without_access = ("anonymous", "executor token", "wrong token")
    #: role -> rights on the own group
    rights = {
        "outsider": frozenset(),
        "viewer": frozenset({Right.VIEW}),
        "operator": frozenset({Right.VIEW, Right.OPERATE}),
        "editor": frozenset({Right.VIEW, Right.EDIT}),
        "coder": frozenset({Right.VIEW, Right.GLUE}),
    }
    #: roles that have every right on another group
    of_several_groups = ("viewer", "operator", "editor", "coder")
    calls = [(endpoint, call) for endpoint, calls in ENDPOINTS.items() for call in calls]
    #: endpoints that report a missing right as an error of the file
    by_content = frozenset({"job_transfer.import_file"})
    #: what else an entitled request may mean: the forms are examples
    also = frozenset({Meaning.REFUSED})
    nowhere = NOWHERE
    #: a missing object is a success for them, as in the original; of all runs an administrator may clear none
    forgiving = frozenset(
        {
            "scripting_jobs.remove",
            "scripting_users.remove",
            "scripting_users.update",
            "scripting_logs.clear_log",
        }
    )

    def __init__(self, app: Flask) -> None:
        self.app = app

    def meet(self, role: str) -> "ConsoleClient":
        return ConsoleClient(self, role)

    def make_place(self, title: str) -> Place:
        return make_place(title)

    def snapshot(self) -> list[Any]:
        return places.snapshot()

    def meaning_of(self, answer: TestResponse) -> Meaning:
        return places.meaning_of(answer)

    def shape_of(self, answer: TestResponse, place: Place) -> object:
        """Return status and text of an answer without ids and names."""
        return places.answer_of(answer)

    def names_object(self, call: Call) -> bool:
        return has_object(call)

    def check(self, answer: TestResponse) -> None:
        """Check what holds for every answer: nothing."""

    def hides_foreign(self, name: str, answer: TestResponse) -> bool:
        """Whether the answer about a foreign object is that of one that does not exist."""
        return self.meaning_of(answer) in (Meaning.MISSING, Meaning.REFUSED) or name in self.forgiving

    def own_text(self, call: Call, answer: TestResponse, place: Place) -> str:
        """Return the text of an answer without what the request itself contained."""
        text = answer.text.replace(filled(call.path, place), "").replace("q=confidential", "")
        return text.replace(place.app_name, "") if not call.is_list else text


class ConsoleClient:
    """Browser or script."""

    def __init__(self, door: ConsoleDoor, role: str) -> None:
        self._door, self._role = door, role
        self._meet()

    def _meet(self) -> None:
        """Log in with a new place: former requests may have removed the objects of the one before."""
        door, role = self._door, self._role
        place, console = make_place("own"), Console(door.app, door.app.test_client())
        if role in door.without_access:
            valid = access_tokens(door.app.config["XXL_JOB"])[0]
            token = {"anonymous": "", "executor token": valid}.get(role, "wrong-token-0123456")
            self._caller, self.place = Caller(console, token=token), place
            return
        name = "admin"
        if role in door.rights:
            name, rights = f"{role}{next(_numbers)}", door.rights[role]
            groups = [place.group, add_group(f"granted-{name}")] if rights else []
            add_user(name, groups, {place.group: rights} if rights else None)
        self._caller, self.place = Caller(console, name), owned_by(name, place)

    def send(self, name: str, call: Call, place: Place) -> TestResponse:
        return self._caller.send(call, place)

    def try_out(self, name: str, call: Call) -> TestResponse:
        answer = self._caller.send(call, self.place)
        if call.form is not None and DESTRUCTIVE.match(call.path):
            self._meet()
        return answer
