"""Archived logs beside a backup: a tar of their files, which are compressed already.

What was archived after the database was copied has no row in the backup; the clean-up deletes it after a
restore. A log whose file is missing says so on its page.
"""

import os
import secrets
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Final

from app.blobs.blob_store import NoBlob, StoreFull
from app.blobs.folder import Folder
from app.blobs.stores import store_of
from app.domain.archive.chunks import CHUNK_NAME
from app.errors import NotConfigured
from app.services.backups.archive import MODE, PART
from app.settings.config import Config

SUFFIX: Final = ".logs.tar"
#: bytes of a file at most: a pull fetches less
FILE_MAX: Final = 64 * 1024 * 1024


def logs_of(backup: Path) -> Path:
    """Return the file of the archived logs of a backup."""
    return backup.with_name(backup.name + SUFFIX)


def require_folder(config: Config) -> Folder:
    """Return the folder of the log archive; raises NotConfigured for a bucket."""
    store = store_of(config)
    if not isinstance(store, Folder):
        raise NotConfigured("the archived logs are in a bucket: copy it with the tools of its server")
    return store


def save_logs(config: Config, backup: Path) -> tuple[Path, int]:
    """Write the archived logs beside a backup; return the file, and how many files it has."""
    store, path, count = require_folder(config), logs_of(backup), 0
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}{PART}")
    try:
        with (
            os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE), "wb") as stream,
            tarfile.open(fileobj=stream, mode="w") as tar,
        ):
            for blob in store.list(""):
                if not CHUNK_NAME.fullmatch(blob.name):
                    continue
                try:
                    content = store.get(blob.name)
                except NoBlob:  # It was deleted meanwhile.
                    continue
                entry = tarfile.TarInfo(blob.name)
                entry.size, entry.mode, entry.mtime = len(content), MODE, blob.written_ms // 1000
                tar.addfile(entry, BytesIO(content))
                count += 1
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.rename(path)
    except OSError as exc:
        raise NotConfigured(f"{path}: cannot be written: {exc.strerror or exc}") from exc
    finally:
        draft.unlink(missing_ok=True)
    return path, count


def restore_logs(config: Config, backup: Path) -> int:
    """Put the archived logs beside a backup in place, if there are any; return how many files."""
    path, count = logs_of(backup), 0
    if not path.is_file():
        return 0
    store = require_folder(config)
    try:
        with tarfile.open(path, "r:") as tar:
            for entry in tar:
                # Other names are not written: they could lead out of the folder.
                if not CHUNK_NAME.fullmatch(entry.name) or not entry.isreg() or entry.size > FILE_MAX:
                    continue
                content = tar.extractfile(entry)
                if content is not None:
                    store.put(entry.name, content.read(FILE_MAX))
                    count += 1
    except (tarfile.TarError, OSError, StoreFull) as exc:
        raise NotConfigured(f"{path}: the archived logs cannot be restored: {exc}") from exc
    return count
