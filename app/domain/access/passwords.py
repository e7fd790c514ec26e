"""Password policy: one rule for pages, endpoints and the command line.

A password is common if, ignoring case, one of these holds:

- it is on the list, a word of ours or the user name, also with up to six digits and symbols around it and
  with digits and symbols in place of letters (``P@ssw0rd!``, ``Welcome2024``);
- it is such a word with a listed number before or behind it, or up to three letters with one
  (``qq12345678``);
- it is such a word repeated, one or two characters in any order, or a sequence (``abcdefgh``).

Several words are not common together, so passphrases pass.
"""

from collections.abc import Iterator, Set

from app.domain.text.texts import N_
from app.errors import InvalidInput

PASSWORD_MIN = 8
PASSWORD_MAX = 128
#: most digits and symbols around a common word; more of them are a secret of their own
AROUND_MAX = 6
#: shorter words are neither sought among other characters, nor do they add anything to a listed number
WORD_MIN = 4
#: words of this product; the list has none of them
_PRODUCT_TEXT = """
    xxl xxljob xxl-job xxl_job xxl-job-admin xxljobadmin xxl-job-executor xxl-job-executor-sample
    default_token defaulttoken jobadmin job-admin executor scheduler jobscheduler job-scheduler
"""
PRODUCT_WORDS = frozenset(_PRODUCT_TEXT.split())
#: digits and symbols in place of letters; 1 stands for two of them
_LEET = {"@": "a", "4": "a", "0": "o", "3": "e", "$": "s", "5": "s", "7": "t", "8": "b"}
_SPELLINGS = tuple(str.maketrans(_LEET | {"1": letter, "!": letter, "|": letter}) for letter in ("i", "l"))


def check_new_password(password: str, *, username: str, common: Set[str]) -> None:
    """Raise InvalidInput for a password that is too short, too long or too common.

    ``common`` is the list of common passwords, in lower case.
    """
    if not password.strip():
        raise InvalidInput("password", N_("Enter a password"))
    if not PASSWORD_MIN <= len(password) <= PASSWORD_MAX:
        raise InvalidInput(
            "password",
            N_("The password must have %(low)s to %(high)s characters", low=PASSWORD_MIN, high=PASSWORD_MAX),
        )
    if is_common(password, username=username, common=common):
        raise InvalidInput("password", N_("This is a common password; choose another"))


def is_common(password: str, *, username: str, common: Set[str]) -> bool:
    """Whether a password is on the list ``common`` or as easily guessed; see the module for the rules."""
    password, username = password.lower(), username.lower()
    words = {username, *PRODUCT_WORDS}
    if len(set(password)) <= 2 or _is_sequence(password):
        return True
    return any(
        spelling in common or spelling in words
        for candidate in (*_without_surroundings(password), *_without_number(password, common))
        for spelling in _spellings(_repeat_of(candidate))
    ) or any(len(word) < WORD_MIN for word in _without_number(password, common))


def _is_sequence(password: str) -> bool:
    steps = {ord(second) - ord(first) for first, second in zip(password, password[1:], strict=False)}
    return steps in ({1}, {-1})


def _spellings(word: str) -> Iterator[str]:
    yield word
    for spelling in _SPELLINGS:
        yield word.translate(spelling)


def _repeat_of(text: str) -> str:
    """Return what a text repeats, such as ``root`` for ``rootrootro``; the text itself if nothing."""
    period = next(size for size in range(1, len(text) + 1) if text.startswith(text[size:]))
    return text[:period] if 2 * period <= len(text) else text


def _edges(password: str) -> tuple[int, int]:
    """Return how many characters before the first letter and after the last one are no letters."""
    letters = [place for place, character in enumerate(password) if character.isalpha()]
    return (letters[0], len(password) - 1 - letters[-1]) if letters else (len(password), len(password))


def _without_surroundings(password: str) -> Iterator[str]:
    """Yield the password without up to AROUND_MAX digits and symbols at both ends, in every way."""
    before, after = _edges(password)
    for first in range(min(before, AROUND_MAX) + 1):
        for last in range(min(after, AROUND_MAX - first) + 1):
            candidate = password[first : len(password) - last]
            if len(candidate) >= WORD_MIN:
                yield candidate


def _without_number(password: str, common: Set[str]) -> Iterator[str]:
    """Yield the letters within, if one of their sides is only a listed number."""
    before, after = _edges(password)
    if before + after >= len(password):
        return
    numbers = {_digits(password[:before]), _digits(password[len(password) - after :])} - {""}
    if numbers and numbers <= common:
        yield password[before : len(password) - after]


def _digits(text: str) -> str:
    return "".join(character for character in text if character.isdigit())
