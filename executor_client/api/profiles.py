"""Profiles: addresses and tokens of consoles, in a file that only its owner can read."""

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from executor_client.api.errors import NotConfigured
from executor_client.config.program_name import program_name

URL = "XXL_JOB_URL"
TOKEN = "XXL_JOB_TOKEN"
TOKEN_FILE = "XXL_JOB_TOKEN_FILE"
PROFILE = "XXL_JOB_PROFILE"
#: default name of a profile
DEFAULT_NAME = "default"
#: mode of the file, and the mode bits that give access to others
OWNER_ONLY, OTHERS_BITS = 0o600, 0o077


@dataclass(frozen=True)
class Profile:
    """A console and the token to call it with."""

    url: str
    token: str = field(repr=False)


@dataclass
class Profiles:
    """Profiles of a file, and the name of the default one."""

    default: str = ""
    profiles: dict[str, Profile] = field(default_factory=dict)


def profiles_path(environ: Mapping[str, str]) -> Path:
    """Return the path of the file of profiles."""
    folder = environ.get("XDG_CONFIG_HOME") or ""
    # The XDG Base Directory Specification makes relative paths invalid.
    base = Path(folder) if Path(folder).is_absolute() else Path.home() / ".config"
    return base / "xxl-job" / "profiles.json"


def read_profiles(path: Path) -> Profiles:
    """Return the profiles of a file, none if it does not exist; raise NotConfigured."""
    try:
        with path.open(encoding="utf-8") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & OTHERS_BITS:
                raise NotConfigured(f"{path}: others can read the tokens in it; run: chmod 600 {path}")
            content = json.load(file)
        entries = content["profiles"]
        profiles = {name: Profile(str(entry["url"]), str(entry["token"])) for name, entry in entries.items()}
        return Profiles(str(content.get("default") or ""), profiles)
    except FileNotFoundError:
        return Profiles()
    except OSError as exc:
        raise NotConfigured(f"{path}: cannot be read: {exc.strerror}") from exc
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise NotConfigured(
            f"{path}: not a file of profiles; remove it and run: {program_name()} login"
        ) from exc


def write_profiles(path: Path, profiles: Profiles) -> None:
    """Replace the file of profiles; raise NotConfigured if it cannot be written."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(profiles), file, indent=2)
            file.write("\n")
        new.replace(path)
    except OSError as exc:
        new.unlink(missing_ok=True)
        raise NotConfigured(f"{path}: cannot be written: {exc.strerror}") from exc


def find_profile(name: str, environ: Mapping[str, str]) -> Profile | None:
    """Return the console to call and its token; None if nothing names one.

    Order of precedence: ``name`` (from the command line), ``XXL_JOB_URL``, ``XXL_JOB_PROFILE``, the file's
    default. The token of the environment replaces the profile's; a profile's token is never sent to
    ``XXL_JOB_URL``.
    """
    token = token_of(environ)
    url = environ.get(URL, "").strip()
    if url and not name:
        if not token:
            raise NotConfigured(f"{URL} is set, but no token: set {TOKEN} or {TOKEN_FILE}")
        return Profile(url, token)
    path = profiles_path(environ)
    profiles = read_profiles(path)
    profile_name = name or environ.get(PROFILE, "").strip() or profiles.default
    if not profile_name:
        return None
    if profile_name not in profiles.profiles:
        names = ", ".join(sorted(profiles.profiles)) or "none"
        raise NotConfigured(
            f"there is no profile {profile_name} in {path} (there: {names}); run: {program_name()} login"
        )
    profile = profiles.profiles[profile_name]
    return Profile(profile.url, token or profile.token)


def token_of(environ: Mapping[str, str]) -> str:
    """Return the token of the environment, empty if there is none; raise NotConfigured."""
    token = environ.get(TOKEN, "").strip()
    path = environ.get(TOKEN_FILE, "").strip()
    if token and path:
        raise NotConfigured(f"{TOKEN} and {TOKEN_FILE} are both set: set one of them")
    return read_token(Path(path), f"{TOKEN_FILE}=") if path else token


def read_token(path: Path, label: str = "") -> str:
    """Return the token in a file; raise NotConfigured, with ``label`` before the path."""
    try:
        token = path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "expected UTF-8"
        raise NotConfigured(f"{label}{path}: cannot be read: {reason}") from exc
    if not token:
        raise NotConfigured(f"{label}{path}: the file is empty")
    return token
