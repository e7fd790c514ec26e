"""Files of settings, in the syntax of systemd's ``EnvironmentFile``: one ``NAME=value`` a line.

Empty lines and those that begin with ``#`` or ``;`` are skipped. A value may be in single or double
quotes, which may contain line ends. A backslash joins lines and takes the next character as it is, in double
quotes only one of ``\\``, ``"``, ``$`` and a backtick. Nothing is expanded.
"""

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

from app.errors import NotConfigured

#: UTF-8, and a byte-order mark at the beginning, as editors of Windows write it, is skipped
ENCODING = "utf-8-sig"
_BLANK = re.compile(r"[ \t]*(?:[#;][^\n]*)?(?:\n|\Z)")
_NAME = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=")
_SINGLE = re.compile(r"[ \t]*'([^']*)'")
_DOUBLE = re.compile(r'[ \t]*"((?:\\.|[^"\\])*)"', re.DOTALL)
_PLAIN = re.compile(r"[ \t]*((?:\\(?:.|\Z)|[^\\\n])*)(?:\n|\Z)", re.DOTALL)


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables of a file; raises NotConfigured if it cannot be read or a line is invalid."""
    try:
        text = path.read_text(encoding=ENCODING)
    except UnicodeDecodeError as exc:
        raise NotConfigured(f"{path}: cannot be read: expected UTF-8") from exc
    except OSError as exc:
        raise NotConfigured(f"{path}: cannot be read: {exc.strerror}") from exc
    try:
        return parse_env_file(text)
    except ValueError as exc:
        raise NotConfigured(f"{path}, {exc}") from exc


def parse_env_file(text: str) -> dict[str, str]:
    """Return the variables; raises ValueError with the line and what is expected."""
    values: dict[str, str] = {}
    position = 0
    while position < len(text):
        if blank := _BLANK.match(text, position):
            position = blank.end()
            continue
        line = text.count("\n", 0, position) + 1
        name = _NAME.match(text, position)
        if name is None:
            raise ValueError(f"line {line}: expected NAME=value, {_name_problem(text, position)}")
        try:
            values[name[1]], position = _value(text, name.end())
        except ValueError as exc:
            raise ValueError(f"line {line}: {name[1]}: {exc}") from exc
    return values


def _name_problem(text: str, position: int) -> str:
    """Return what is wrong with the line at ``position``, with nothing in it that may be of a secret.

    A line without ``=``, or with nothing behind it, may be the rest of one, such as of a key in base64.
    """
    name, _, value = text[position:].partition("\n")[0].partition("=")
    if not value.strip("= \t\r"):
        return "found no name before a ="
    word = name.strip(" \t")[:40]
    return f"found the name {ascii(word)}"


def write_setting(path: Path, name: str, value: str) -> None:
    """Set a variable in a file, which is replaced as a whole and keeps its owner and mode.

    Raises NotConfigured if the file cannot be written or would not give the value back.
    """
    try:
        text = path.read_text(encoding=ENCODING)
        escaped_value = re.sub(r'([\\"$`])', r"\\\1", value)
        line = (
            f"{name}={value}"
            if re.fullmatch(r"[A-Za-z0-9:/@._~%?&=+,-]*", value)
            else f'{name}="{escaped_value}"'
        )
        other_lines = re.sub(rf"(?m)^[ \t]*(export[ \t]+)?{re.escape(name)}[ \t]*=.*\n?", "", text)
        new_text = (
            other_lines + ("\n" if other_lines and not other_lines.endswith("\n") else "") + line + "\n"
        )
        if not _gives(new_text, parse_env_file(text) | {name: value}):
            raise NotConfigured(f"{path}: {name} cannot be set; set it by hand")
        _replace(path, new_text)
    except OSError as exc:
        raise NotConfigured(f"{path}: cannot be written: {exc.strerror}; set {name} by hand") from exc


def _gives(text: str, values: dict[str, str]) -> bool:
    """Whether a file with this text gives these variables back."""
    try:
        return parse_env_file(text) == values
    except ValueError:  # It is the rest of a value of several lines.
        return False


def _replace(path: Path, text: str) -> None:
    target = path.resolve()
    status, draft = target.stat(), target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(descriptor)
        draft.chmod(status.st_mode & 0o777)
        with suppress(PermissionError):  # Only root can give it to another user.
            os.chown(draft, status.st_uid, status.st_gid)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _value(text: str, position: int) -> tuple[str, int]:
    """Return the value that begins at ``position``, and the position of the next line."""
    parts = []
    while quotation := _SINGLE.match(text, position) or _DOUBLE.match(text, position):
        is_double = quotation.re is _DOUBLE
        parts.append(re.sub(r'\\([\\"$`]|\n)', _unescape, quotation[1]) if is_double else quotation[1])
        position = quotation.end()
    plain = _PLAIN.match(text, position)
    if plain is None or plain[1][:1] in ("'", '"'):
        raise ValueError("a quote is not closed")
    # White space at the end counts only behind a backslash.
    visible = re.match(r"(?:\\.|[^\\])*(?:\\.|[^\\\s])", plain[1], re.DOTALL)
    parts.append(re.sub(r"\\(.|\Z)", _unescape, visible[0] if visible else "", flags=re.DOTALL))
    return "".join(parts), plain.end()


def _unescape(escape: re.Match[str]) -> str:
    return "" if escape[1] == "\n" else escape[1]
