"""The folder of everything written: its secrets are made once, owner-readable only, and read back.

Not in ``config`` because reading a setting must write nothing.
"""

import os
import secrets
from pathlib import Path

from app.config import MIN_TOKEN_LENGTH, REFUSED_TOKENS, Config
from app.errors import NotConfigured

TOKEN_FILE = "access_token"
PASSWORD_FILE = "admin_password"
SECRET_KEY_FILE = "secret_key"
#: files that hold secrets
SECRET_MODE = 0o600


def prepare_home(home: Path) -> None:
    """Create the home folder if needed; raises NotConfigured where it cannot be written."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        writable = os.access(home, os.W_OK | os.X_OK)
    except OSError as exc:
        raise NotConfigured(f"XXL_JOB_HOME: the folder {home} cannot be made: {exc.strerror}") from exc
    if not writable:
        raise NotConfigured(
            f"XXL_JOB_HOME: the folder {home} cannot be written; name another one or change its rights"
        )


def secret_file(path: Path, new_secret: str) -> tuple[str, bool]:
    """Return the text of a secret file and whether this call made it; the first of several processes wins.

    Raises NotConfigured where it cannot be written, as on a full disk.
    """
    if not path.exists():
        draft = path.with_name(
            f".{path.name}.{secrets.token_hex(8)}"
        )  # not by process id: in containers all are process 1
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, SECRET_MODE)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(new_secret + "\n")
                stream.flush()
                os.fsync(stream.fileno())
            os.link(draft, path)  # fails where the file exists: never overwrites, never half written
            return new_secret, True
        except FileExistsError:
            pass
        except OSError as exc:
            raise NotConfigured(f"XXL_JOB_HOME: {path} cannot be written: {exc.strerror}") from exc
        finally:
            draft.unlink(missing_ok=True)
    return path.read_text(encoding="utf-8").strip(), False


def access_tokens(config: Config) -> tuple[str, ...]:
    """Return the executors' tokens, first the one to send: the configured ones, else the stored one, made at first start."""
    if config.access_tokens:
        return config.access_tokens
    prepare_home(config.home)
    path = config.home / TOKEN_FILE
    token, _ = secret_file(path, secrets.token_hex(24))
    if len(token) < MIN_TOKEN_LENGTH or token in REFUSED_TOKENS:
        raise NotConfigured(
            f"{path}: a token of at least {MIN_TOKEN_LENGTH} characters is needed; delete the file to have one made"
        )
    return (token,)


def secret_key(config: Config) -> str:
    """Return the key forms are signed with; made at first start."""
    prepare_home(config.home)
    return secret_file(config.home / SECRET_KEY_FILE, secrets.token_hex(32))[0]


def first_password(config: Config) -> str:
    """Return admin's first password: the configured one, else the stored one, made at the first call."""
    if config.admin_password:
        return config.admin_password
    prepare_home(config.home)
    return secret_file(config.home / PASSWORD_FILE, secrets.token_urlsafe(12))[0]


def forget_first_password(config: Config) -> None:
    """Remove the stored first password once it has been changed."""
    (config.home / PASSWORD_FILE).unlink(missing_ok=True)
