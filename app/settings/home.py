"""Home folder and its secrets, which are generated once and readable by the owner only.

Separate from ``config``, because reading settings must not write files.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from app.errors import NotConfigured
from app.settings.config import MIN_KEY_LENGTH, MIN_TOKEN_LENGTH, REFUSED_TOKENS, Config

#: when and where the last backup was made; no secret
LAST_BACKUP_FILE = "last_backup"
#: name of the first user
ADMIN = "admin"
TOKEN_FILE = "access_token"
PASSWORD_FILE = "admin_password"
SECRET_KEY_FILE = "secret_key"
SECRET_FILES = (SECRET_KEY_FILE, TOKEN_FILE, PASSWORD_FILE)
#: mode of secret files
SECRET_MODE = 0o600


def keep_new_files_private() -> None:
    """Make files that this process and its children create accessible to their owner only."""
    os.umask(0o077)


def prepare_home(home: Path) -> None:
    """Create the home folder if needed; raises NotConfigured if it is not writable."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        writable = os.access(home, os.W_OK | os.X_OK)
    except OSError as exc:
        raise NotConfigured(f"XXL_JOB_HOME: cannot create the folder {home}: {exc.strerror}") from exc
    if not writable:
        raise NotConfigured(
            f"XXL_JOB_HOME: the folder {home} is not writable; choose another one or change its permissions"
        )


def give_to_owner_of_folder(path: Path) -> None:
    """Let a file that root created belong to the owner of its folder, so that the services can read it."""
    if os.geteuid() == 0:
        folder = path.parent.stat()
        os.chown(path, folder.st_uid, folder.st_gid, follow_symlinks=False)


@contextmanager
def _draft_of(path: Path, text: str) -> Iterator[Path]:
    """Yield a complete file beside ``path``, to be put in its place. Raises NotConfigured if that fails."""
    # The name is random, because in containers every process may have the id 1.
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, SECRET_MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        give_to_owner_of_folder(draft)
        yield draft
    except FileExistsError:
        raise
    except OSError as exc:
        raise NotConfigured(f"XXL_JOB_HOME: cannot write {path}: {exc.strerror}") from exc
    finally:
        draft.unlink(missing_ok=True)


def replace_file(path: Path, text: str) -> Path:
    """Replace a small file of the home folder, also if it is absent; return it. Raises NotConfigured."""
    with _draft_of(path, text) as draft:
        draft.replace(path)
    return path


def secret_file(path: Path, new_secret: str) -> tuple[str, bool]:
    """Return the content of a secret file and whether this call created it; the first process wins.

    Raises NotConfigured if it cannot be written, for example on a full disk.
    """
    if not os.path.lexists(path):
        with suppress(FileExistsError), _draft_of(path, new_secret) as draft:
            os.link(draft, path)  # It fails if the file exists, so that nothing is overwritten or incomplete.
            return new_secret, True
    try:
        return path.read_text(encoding="utf-8").strip(), False
    except UnicodeDecodeError as exc:
        raise NotConfigured(f"{path} cannot be read: expected UTF-8") from exc
    except OSError as exc:
        raise NotConfigured(f"{path} cannot be read: {exc.strerror}") from exc


def access_tokens(config: Config) -> tuple[str, ...]:
    """Return the accepted tokens, the one to send first: configured, else stored at the first start."""
    if config.access_tokens:
        return config.access_tokens
    prepare_home(config.home)
    path = config.home / TOKEN_FILE
    text, _ = secret_file(path, _new_token())
    tokens = split_tokens(text)
    if len(tokens) > 2 or any(len(token) < MIN_TOKEN_LENGTH or token in REFUSED_TOKENS for token in tokens):
        raise NotConfigured(
            f"{path}: expected a token of at least {MIN_TOKEN_LENGTH} characters, or two with a comma;"
            " delete the file to generate a new one"
        )
    return tokens


def split_tokens(text: str) -> tuple[str, ...]:
    """Return the tokens of a file: one, or two separated by a comma while one is replaced."""
    return tuple(token.strip() for token in text.split(","))


def rotate_token(config: Config) -> Path:
    """Put a new access token before the stored one, which stays valid; return the file.

    Raises NotConfigured if a setting overrules the file, and while two tokens are valid.
    """
    tokens = _stored_tokens(config)
    if len(tokens) > 1:
        raise NotConfigured(f"{_token_file(config)} has two tokens: end that change first, with --end")
    return replace_file(_token_file(config), ",".join((_new_token(), *tokens)))


def end_rotation(config: Config) -> Path:
    """Remove the former access token; return the file. Raises NotConfigured if only one is valid."""
    tokens = _stored_tokens(config)
    if len(tokens) == 1:
        raise NotConfigured(f"{_token_file(config)} has one token only: no change is to be ended")
    return replace_file(_token_file(config), tokens[0])


def _new_token() -> str:
    return secrets.token_hex(24)


def _token_file(config: Config) -> Path:
    return config.home / TOKEN_FILE


def _stored_tokens(config: Config) -> tuple[str, ...]:
    """Return the tokens of the file; raises NotConfigured if there is none, or a setting overrules it."""
    if config.access_tokens:
        source = config.sources.get("XXL_JOB_ACCESS_TOKEN", "set")
        raise NotConfigured(f"XXL_JOB_ACCESS_TOKEN is set ({source}): put the new token before it there")
    path = _token_file(config)
    if path.is_symlink():  # It is not followed: the folder may belong to another user than root.
        raise NotConfigured(f"{path} is a link: change the token in {path.resolve()} by hand")
    if not path.exists():
        raise NotConfigured(f"{path}: there is no token yet; the console makes one")
    return access_tokens(config)


def secret_key(config: Config) -> str:
    """Return the application key, which seals stored tokens and signs forms.

    Configured, else stored at the first start. Raises NotConfigured if the stored one is too short.
    """
    if config.secret_key:
        return config.secret_key
    prepare_home(config.home)
    path = config.home / SECRET_KEY_FILE
    key, _ = secret_file(path, secrets.token_hex(32))
    if len(key) < MIN_KEY_LENGTH:
        raise NotConfigured(f"{path}: expected a key of at least {MIN_KEY_LENGTH} characters")
    return key


def stored_key(config: Config) -> str:
    """Return the application key without making one. Raises NotConfigured if there is none yet."""
    if config.secret_key:
        return config.secret_key
    path = config.home / SECRET_KEY_FILE
    try:
        return path.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as exc:
        raise NotConfigured(f"{path}: the application key cannot be read: expected UTF-8") from exc
    except OSError as exc:
        raise NotConfigured(f"{path}: the application key cannot be read: {exc.strerror}") from exc


def first_password(config: Config) -> str:
    """Return the initial password of admin: configured, else stored by the first call."""
    if config.admin_password:
        return config.admin_password
    prepare_home(config.home)
    return secret_file(config.home / PASSWORD_FILE, secrets.token_urlsafe(12))[0]


def forget_first_password(config: Config, username: str) -> None:
    """Delete the stored initial password if it is this user's, whose password has been changed."""
    if username == ADMIN:
        (config.home / PASSWORD_FILE).unlink(missing_ok=True)
