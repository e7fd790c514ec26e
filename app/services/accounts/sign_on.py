"""Sign-on by OpenID Connect: users of the provider get a row, rights from their claims, and a normal login.

The provider's issuer and subject identify a user; names never do: a name that a local user has is refused.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Millis
from app.database.engine import read_scope, transact
from app.domain.access import stored_passwords
from app.domain.access.claims import claim, claim_values, granted_rights, printable
from app.domain.access.permissions import Actor, require_admin, unknown_actor
from app.domain.enums import Role, WeakPassword
from app.domain.text.texts import N_
from app.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    ProviderFault,
    SignOnExpired,
    SignOnRefused,
    TooManyAttempts,
)
from app.models.user import User
from app.services.accounts import login, login_throttle, users
from app.services.accounts.users import UserDraft
from app.services.auditing import audit, refusals
from app.settings.oidc import OidcConfig
from app.sign_on.pending import PENDING_S, new_pending, seal, unseal
from app.store.accounts import rights, sessions, throttle
from app.store.accounts import users as user_store
from app.store.executors import listing as group_lists

if TYPE_CHECKING:  # Authlib is imported only where a provider is configured.
    from app.sign_on.provider import Provider

#: longest user name of a provider, as the column has it
NAME_MAX = 50
IDENTITY_MAX = 255
#: longest reason in the audit; it holds an identity
REASON_MAX = 400
EXPIRED = N_("This login has expired or was started in another browser. Start it again.")


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of the provider, as the browser delivers it; empty: missing."""

    code: str
    state: str
    error: str
    issuer: str
    #: cookie of the start
    cookie: str
    address: str
    agent: str


@dataclass(frozen=True, slots=True)
class Start:
    """Start of a sign-on: the provider's URL and the cookie that ties its answer to the browser."""

    url: str
    cookie: str
    max_age_s: int


class SignOn:
    """Logins by one provider."""

    def __init__(self, config: OidcConfig, provider: "Provider") -> None:
        self._config = config
        self._provider = provider

    @property
    def label(self) -> str:
        """Configured text of the button; may be empty."""
        return self._config.label

    def begin(self, *, now_ms: Millis) -> Start:
        """Start a sign-on with new secrets. Raises ProviderUnreachable."""
        pending = new_pending()
        url = self._provider.authorization_url(pending)
        return Start(url, seal(pending, now_ms=now_ms), PENDING_S)

    def finish(self, answer: Answer, *, now_ms: Millis) -> login.Login:
        """Check an answer and open a login. Opens its own transactions; refusals are audited.

        Raises SignOnRefused, ProviderUnreachable, and TooManyAttempts after too many refusals.
        """
        _check_source(answer.address, now_ms=now_ms)
        try:
            claims = self._claims(answer, now_ms=now_ms)
            try:
                return transact(lambda session: self._enter(session, claims, answer, now_ms=now_ms))
            except IntegrityError:  # another request has added the user at the same time
                return transact(lambda session: self._enter(session, claims, answer, now_ms=now_ms))
        except SignOnRefused as exc:
            _record_refusal(exc, answer.address, now_ms=now_ms)
            raise

    def logout_url(self, back: str) -> str:
        """Return the URL that ends the provider's session; empty if there is none."""
        return self._provider.logout_url(back)

    def _claims(self, answer: Answer, *, now_ms: Millis) -> dict[str, Any]:
        """Return the verified claims of an answer to the sign-on that this browser started."""
        pending = unseal(answer.cookie, now_ms=now_ms) if answer.cookie else None
        if pending is None:
            raise SignOnExpired(EXPIRED, reason="no cookie of a start" if not answer.cookie else "cookie")
        if not hmac.compare_digest(pending.state.encode(), answer.state.encode("utf-8", "replace")):
            raise SignOnExpired(EXPIRED, reason="state")
        if answer.error:
            error = printable(answer.error, limit=100)
            text = N_("The identity provider refused the login: %(error)s", error=error)
            raise SignOnRefused(text, reason=f"provider: {error}")
        if not self._provider.is_issuer(answer.issuer) or not answer.code:
            raise SignOnExpired(EXPIRED, reason="issuer" if answer.code else "no code")
        return self._provider.redeem(answer.code, pending, now_s=now_ms // SECOND_MS)

    def _enter(
        self, session: Session, claims: Mapping[str, Any], answer: Answer, *, now_ms: Millis
    ) -> login.Login:
        identity = identity_of(self._config, str(claims["sub"]))
        user = user_store.lock_by_identity(session, identity)
        is_new = user is None
        if user is None:
            user = _new_user(session, self._username(claims), identity)
        if user.disabled:
            raise SignOnRefused(N_("This user is disabled"), reason="disabled", username=user.username)
        actor = Actor(user_id=user.id, username=user.username, is_admin=False, address=answer.address)
        before = (user.role, user.permission, rights.rights_of(session, user.id))
        self._grant(session, user, claims, is_new=is_new)
        after = (user.role, user.permission, rights.rights_of(session, user.id))
        if is_new or before != after:
            changes: dict[str, Any] = {"username": user.username, "identity": identity}
            changes |= {"role": user.role, "permission": user.permission, "rights": after[2]}
            action, target = "user.add" if is_new else "user.update", ("user", user.id)
            audit.record(session, action, actor=actor, now_ms=now_ms, target=target, changes=changes)
        if before[0] != after[0]:
            sessions.delete_of_user(session, user.id)
        attempt = login.Attempt(user.username, "", False, answer.address, answer.agent)
        return login.open_session(session, user, attempt, now_ms=now_ms, sign_on=True)

    def _grant(self, session: Session, user: User, claims: Mapping[str, Any], *, is_new: bool) -> None:
        """Set role and rights as the claims have them; what is not configured stays."""
        config, values = self._config, claim_values(claims, self._config.groups_claim)
        role = current = Role.ADMIN if user.is_admin else Role.NORMAL
        if config.admin_values:
            role = Role.ADMIN if values & set(config.admin_values) else Role.NORMAL
        elif is_new and self._is_first_admin(session, str(claims["sub"]), user.username):
            role = Role.ADMIN
        if role is Role.NORMAL and config.rights:
            names = {group.id: group.app_name for group in group_lists.find_visible(session, None)}
            rights_by_group = granted_rights(values, config.rights, names)
            draft = UserDraft(role=role, group_ids=tuple(sorted(rights_by_group)), rights=rights_by_group)
        elif role is not current:
            draft = UserDraft(role=role)
        else:
            return
        try:
            users.grant(session, user, draft)
        except InvalidInput as exc:
            raise SignOnRefused(exc.message, reason=f"rights: {exc}", username=user.username) from exc

    def _is_first_admin(self, session: Session, subject: str, username: str) -> bool:
        """Whether the setting names this new user, and no user of the provider is an administrator yet.

        A user's subject is no other user's name.
        """
        first_admin = self._config.first_admin
        if not first_admin or self._has_admin(session):
            return False
        if subject == first_admin:
            return True
        return username == first_admin and not user_store.lock_by_identity(
            session, f"{self._config.issuer} {first_admin}"
        )

    def _has_admin(self, session: Session) -> bool:
        admins = user_store.lock_enabled_admins(session)
        return any((admin.identity or "").startswith(f"{self._config.issuer} ") for admin in admins)

    def _username(self, claims: Mapping[str, Any]) -> str:
        name = claim(claims, self._config.username_claim)
        if not isinstance(name, str) or not 1 <= len(name) <= NAME_MAX or not users.is_valid_name(name):
            text_name = printable(str(name), limit=NAME_MAX) if name else ""
            text = N_("The identity provider's user name is missing or invalid: %(name)s", name=text_name)
            raise SignOnRefused(text, reason="user name", username=text_name)
        return name


def identity_of(config: OidcConfig, subject: str) -> str:
    """Return what identifies a user: issuer and subject. Raises SignOnRefused for an unusable subject."""
    identity = f"{config.issuer} {subject}"
    if len(identity) > IDENTITY_MAX or not subject.isprintable() or subject != subject.strip() or not subject:
        raise SignOnRefused(N_("The subject of the user is too long or invalid"), reason="subject")
    return identity


def link(
    session: Session, config: OidcConfig, username: str, subject: str, *, actor: Actor, now_ms: Millis
) -> None:
    """Make a local user one of the provider; its password and logins end. An empty subject undoes it.

    Administrators only. Raises Conflict for the last enabled administrator with a password: it is needed
    while the provider is away.
    """
    require_admin(actor)
    admins = user_store.lock_enabled_admins(session)
    user = user_store.lock_by_name(session, username)
    if user is None:
        raise NotFound(N_("There is no user %(name)s", name=username))
    if not subject and not user.identity:
        raise Conflict(N_("The user %(name)s is not linked", name=username))
    identity = identity_of(config, subject) if subject else None
    owner = user_store.lock_by_identity(session, identity) if identity else None
    if owner is not None and owner.id != user.id:
        raise Conflict(N_("This identity belongs to the user %(name)s", name=owner.username))
    other_admins = [admin for admin in admins if admin.id != user.id and _has_password(admin)]
    if identity and user.is_admin and not other_admins:
        raise Conflict(N_("This is the last administrator with a password; add another one first"))
    user.identity, user.password, user.weak_password = identity, stored_passwords.UNUSABLE, WeakPassword.NO
    sessions.delete_of_user(session, user.id)
    changes = {"identity": identity or ""}
    audit.record(session, "user.link", actor=actor, now_ms=now_ms, target=("user", user.id), changes=changes)


def _has_password(user: User) -> bool:
    """Whether a user can log in here without the provider."""
    return user.identity is None and user.password != stored_passwords.UNUSABLE


def _new_user(session: Session, username: str, identity: str) -> User:
    if user_store.is_name_taken(session, username):
        text = N_("There is another user %(name)s here. An administrator can link it to you.", name=username)
        raise SignOnRefused(text, reason=f"name taken, identity {identity}", username=username)
    user = User(username=username, password=stored_passwords.UNUSABLE, identity=identity, role=Role.NORMAL)
    user.permission, user.disabled, user.language, user.time_zone = "", 0, "", ""
    session.add(user)
    session.flush()
    return user


def _check_source(address: str, *, now_ms: Millis) -> None:
    """Record and raise TooManyAttempts while a source must wait after failed logins of any kind."""
    with read_scope() as session:
        counter = throttle.find_counter(session, login_throttle.address_subject(address))
        blocked_until_ms = counter.blocked_until_ms if counter is not None else 0
    try:
        login_throttle.require_no_wait(blocked_until_ms, now_ms=now_ms)
    except TooManyAttempts:
        login.note_wait("", address, now_ms=now_ms)
        raise


def _record_refusal(refusal: SignOnRefused, address: str, *, now_ms: Millis) -> None:
    """Audit a refusal, and count it as a failed login of its address.

    An expired answer guesses nothing, and any site can make a browser send one: it is not counted, nor is a
    fault of the provider.
    """
    actor = unknown_actor(address, refusal.username)
    changes = {"sign_on": printable(refusal.reason, limit=REASON_MAX)}
    if isinstance(refusal, SignOnExpired | ProviderFault):
        refusals.note("login.refused", actor, now_ms=now_ms, detail=changes)
        return
    refusals.log_login(refusal.username, address, "sign-on")

    def record(session: Session) -> None:
        source = throttle.lock_counter(session, login_throttle.address_subject(address), now_ms=now_ms)
        login_throttle.count_source_failure(source, now_ms=now_ms)
        audit.record(session, "login.refused", actor=actor, now_ms=now_ms, changes=changes)

    transact(record)
