"""The end of access in the running console: nothing is triggered with what has just been taken away."""

from collections.abc import Callable
from typing import Any

import pytest
import requests

from app.domain.access.permissions import Right
from tests.security.site import TIMEOUT_S, Browser, Site

Trigger = Callable[[], bool]
#: triggers before the change and after it
BEFORE, AFTER = 3, 20


class Api:
    """Client of API v1 with a token of its own, whose first request loads the API."""

    def __init__(self, site: Site, *rights: Right, admin: bool = False) -> None:
        self.token_id, token = site.new_api_token(*rights, admin=admin)
        self._base = f"{site.url}/api/v1"
        self._http = requests.Session()
        self._http.trust_env = False
        self._http.headers["Authorization"] = f"Bearer {token}"
        assert self.send("GET", "/me") == 200

    def send(self, method: str, path: str, body: Any = None) -> int:
        """Send a request; return the status."""
        return self._http.request(method, self._base + path, json=body, timeout=TIMEOUT_S).status_code


def trigger_as(browser: Browser, site: Site) -> Trigger:
    def trigger() -> bool:
        response = browser.post("/jobinfo/trigger", id=site.one.job, executorParam="", addressList="")
        return response.status_code == 200 and bool(response.json()["code"] == 200)

    return trigger


def user_id_of(site: Site, name: str) -> int:
    rows = site.admin.call("/user/pageList", username=name, role=-1, start=0, length=10)["data"]
    return int(next(row["id"] for row in rows if row["username"] == name))


def accepted_after(trigger: Trigger, change: Callable[[], Any]) -> int:
    """Return how many triggers are accepted after a change, while all before it are."""
    assert [trigger() for _ in range(BEFORE)] == [True] * BEFORE
    change()
    return sum([trigger() for _ in range(AFTER)])


@pytest.mark.parametrize("change", [{"rights": []}, {"disabled": True}], ids=["right", "disabled"])
def test_a_user_without_the_right_triggers_nothing_more(site: Site, change: dict[str, Any]) -> None:
    name = f"ends-{next(iter(change))}"
    browser, admin = site.new_user(name, "view,operate"), Api(site, admin=True)
    user_id = user_id_of(site, name)

    def take_away() -> None:
        assert admin.send("PATCH", f"/users/{user_id}", change) == 200

    assert accepted_after(trigger_as(browser, site), take_away) == 0


def test_a_login_that_has_ended_triggers_nothing_more(site: Site) -> None:
    browser = site.new_user("ends-logout", "view,operate")
    assert accepted_after(trigger_as(browser, site), lambda: browser.call("/logout")) == 0


def test_a_revoked_token_triggers_nothing_more(site: Site) -> None:
    api, admin = Api(site, Right.OPERATE), Api(site, admin=True)

    def revoke() -> None:
        assert admin.send("DELETE", f"/tokens/{api.token_id}") == 204

    def trigger() -> bool:
        return api.send("POST", f"/jobs/{site.one.job}/runs", {"param": ""}) == 202

    assert accepted_after(trigger, revoke) == 0
