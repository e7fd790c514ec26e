"""Sign-on against a certified OpenID provider, npm's oidc-provider, unmodified, with its own login form."""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin

import pytest
import requests

from app.database.engine import read_scope
from app.settings.config import Config
from app.settings.oidc import Grant, OidcConfig
from app.store.accounts import rights
from app.store.accounts import users as user_store
from tests.acceptance.programs import Programs, free_port
from tests.interop.foreign import HERE, kept, run
from tests.support.console import CONTEXT, Console, add_group
from tests.support.eventually import eventually
from tests.support.interop import is_listening

pytestmark = pytest.mark.node
PUBLIC = "http://localhost/xxl-job-admin"
CLIENTS = {"xxl-job": "a secret with + and %20", "xxl-job-public": ""}


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the provider; one for all tests."""
    sources = [HERE / "openid" / name for name in ("package.json", "package-lock.json", "provider.mjs")]

    def build(folder: Path) -> None:
        for source in sources:
            shutil.copy(source, folder)
        run(["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], folder)

    folder, port = kept("openid", sources, build), free_port()
    programs = Programs(tmp_path_factory.mktemp("openid"))
    command = ["node", str(folder / "provider.mjs"), str(port), PUBLIC]
    program = programs.start("provider", command, {"PATH": os.environ["PATH"]})
    try:
        eventually(lambda: is_listening(port), 45, "the provider listens")
        yield f"http://127.0.0.1:{port}"
    finally:
        program.kill()


@pytest.fixture(params=CLIENTS)
def client_id(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def settings(settings: Config, issuer: str, client_id: str) -> Config:
    oidc = OidcConfig(
        issuer=issuer,
        client_id=client_id,
        client_secret=CLIENTS[client_id],
        scopes=("openid", "profile"),
        admin_values=("job-admins",),
        rights=(Grant("ops", "sample-app", frozenset({"operate"})),),
    )
    return replace(settings, public_url=PUBLIC, oidc=oidc)


class Browser:
    """A person's browser at the provider."""

    def __init__(self) -> None:
        self.http = requests.Session()
        self.http.trust_env = False

    def sign_in(self, location: str, name: str) -> str:
        """Follow the provider's pages; return the query string it sends to the console."""
        forms = iter(({"prompt": "login", "login": name, "password": "any"}, {"prompt": "consent"}))
        page = self.http.get(location, allow_redirects=False, timeout=20)
        while not page.headers.get("Location", "").startswith(PUBLIC):
            if page.is_redirect:
                page = self.http.get(
                    urljoin(page.url, page.headers["Location"]), allow_redirects=False, timeout=20
                )
                continue
            action = re.search(r'<form[^>]* action="([^"]+)"', page.text)
            assert action is not None, page.text
            page = self.http.post(
                urljoin(page.url, action[1]), next(forms), allow_redirects=False, timeout=20
            )
        return page.headers["Location"].partition("?")[2]


def start(console: Console) -> str:
    return console.get("/sign-on").headers["Location"]


def test_a_user_logs_in_with_rights_and_out_again(console: Console, issuer: str) -> None:
    group_id = add_group()
    browser = Browser()
    query = browser.sign_in(start(console), "norman+ops")
    response = console.client.get(f"{CONTEXT}/sign-on/callback?{query}")
    assert (response.status_code, response.headers.get("Location")) == (303, f"{CONTEXT}/"), response.text
    with read_scope() as session:
        user = user_store.find_by_name(session, "norman")
        assert user is not None
        assert (user.is_admin, user.identity) == (False, f"{issuer} norman+ops")
        assert rights.rights_of(session, user.id) == {group_id: "view,operate"}
    account = console.get("/account").text
    token = re.search(r'name="csrf_token" value="(\w+)"', account)
    assert token is not None
    page = console.post("/account/logout", {"csrf_token": token[1]}).text
    onward = re.search(r'url=([^"]+)">', page)
    assert onward is not None
    at_provider = browser.http.get(onward[1].replace("&amp;", "&"), timeout=20)
    assert at_provider.status_code == 200
    assert "logout" in at_provider.text.lower()
    assert console.get("/account").status_code == 302


def test_an_administrator_comes_from_the_claim(console: Console) -> None:
    query = Browser().sign_in(start(console), "anna+job-admins")
    assert console.client.get(f"{CONTEXT}/sign-on/callback?{query}").status_code == 303
    assert console.get("/user").status_code == 200


def test_a_changed_nonce_and_a_stolen_code_are_refused(console: Console) -> None:
    location = re.sub(r"nonce=[^&]+", "nonce=of-an-attacker", start(console))
    query = Browser().sign_in(location, "norman")
    assert console.client.get(f"{CONTEXT}/sign-on/callback?{query}").status_code == 403
    stolen = re.search(r"code=[^&]+", Browser().sign_in(start(console.another()), "victim"))
    assert stolen is not None
    query = Browser().sign_in(start(console), "attacker")
    injected = re.sub(r"code=[^&]+", stolen[0], query)
    assert console.client.get(f"{CONTEXT}/sign-on/callback?{injected}").status_code == 403  # PKCE
    with read_scope() as session:
        assert user_store.count_users(session) == 1


def test_a_login_cancelled_at_the_provider_is_refused(console: Console, issuer: str) -> None:
    http = Browser().http
    page = http.get(start(console), timeout=20)
    cancel = re.search(r'href="([^"]+/abort)"', page.text)
    assert cancel is not None, page.text
    page = http.get(urljoin(page.url, cancel[1]), allow_redirects=False, timeout=20)
    while not page.headers["Location"].startswith(PUBLIC):
        page = http.get(urljoin(page.url, page.headers["Location"]), allow_redirects=False, timeout=20)
    query = page.headers["Location"].partition("?")[2]
    response = console.client.get(f"{CONTEXT}/sign-on/callback?{query}")
    assert response.status_code == 403
    assert "access_denied" in response.text
