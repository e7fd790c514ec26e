"""Mail addresses of alarms, as users enter them: ``"ops@example.com, dev@example.com"``."""

import re
from collections.abc import Collection, Iterable

from app.domain.text.texts import N_
from app.errors import InvalidInput

FIELD = "alarmEmail"
#: longest part before the @
LOCAL_MAX = 64
_LOCAL = re.compile(r"[^\s@,;:<>()\[\]\\\"\x00-\x1f\x7f]+")
_LABEL = r"[^\W_](?:[^\W_]|-)*(?<!-)"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NAMED = re.compile(r"[^@,;:<>]*<([^<>]*)>")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_COMMENT = re.compile(r"\s*\([^()]*\)$")
_SEVERAL = re.compile(r"[\s,;\uff0c\uff1b<>]|@.*@|^@|@$")


def mails_of(text: str | None) -> list[str]:
    """Split the mail addresses of a job at commas."""
    return [address.strip() for address in (text or "").split(",") if address.strip()]


def check_mails(text: str, *, current: Collection[str] = ()) -> None:
    """Raise InvalidInput, which names the invalid addresses of a list, unless they are among ``current``."""
    wrong = quoted_invalid(address for address in mails_of(text) if address not in current)
    if wrong:
        raise InvalidInput(
            FIELD,
            N_(
                "%(addresses)s: not a mail address such as ops@example.com; separate several by commas",
                addresses=wrong,
            ),
        )


def quoted_invalid(addresses: Iterable[str]) -> str:
    """Return the invalid ones of mail addresses, in quotes, for an error; empty if all are valid."""
    return ", ".join(f'"{address}"' for address in addresses if not is_mail(address))


def is_mail(address: str) -> bool:
    """Whether a text has the form of a mail address; its host may be international, or without a dot."""
    local, _, host = address.rpartition("@")
    if not _LOCAL.fullmatch(local) or len(local) > LOCAL_MAX or not _HOST.fullmatch(host):
        return False
    if local.startswith(".") or local.endswith(".") or ".." in local or not address.isprintable():
        return False
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def find_address(text: str) -> str | None:
    """Return the address of ``ops@example.com``, ``Ops <ops@example.com>`` or ``ops@example.com (Ops)``.

    None unless it is one. It may be of a form that is not accepted any more, such as ``root``.
    """
    match = _NAMED.fullmatch(text.strip())
    address = match[1].strip() if match else _COMMENT.sub("", text.strip())
    plain_address = _QUOTED.sub("quoted", address)
    return (
        address
        if plain_address.isprintable() and plain_address and not _SEVERAL.search(plain_address)
        else None
    )


def with_ascii_host(address: str) -> str:
    """Return an address as mail servers understand it: ``ops@münchen.example`` with an xn-- host."""
    local, at, host = address.rpartition("@")
    try:
        return local + at + host.encode("idna").decode()
    except UnicodeError:
        return address
