"""Backup file: a compressed tar with the manifest first, then the database and the secrets.

It appears under its name when it is complete, on disk and read back.
"""

import gzip
import os
import secrets
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest, sha256
from io import BytesIO
from pathlib import Path
from typing import IO

from app.errors import NotConfigured
from app.services.backups.manifest import Manifest, read_manifest
from app.settings.home import SECRET_FILES

MANIFEST = "manifest.json"
#: folder of the secrets in the archive
SECRETS = "secrets"
#: a manifest and a secret are small
SMALL_MAX = 1024 * 1024
#: entries of an archive at most: manifest, database and secrets
ENTRIES_MAX = 100
#: entries with names and sizes of the next one, which tarfile reads as a whole
HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
#: text of a dump shrinks to a tenth even at the fastest level
LEVEL = 1
MODE = 0o600
#: end of the names of unfinished files
PART = ".part"


class _Entry(tarfile.TarInfo):
    """Entry of a backup: a small compressed file may hold a header of gigabytes."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_Entry":
        entry = super().frombuf(buf, encoding, errors)
        if entry.type in HEADERS and entry.size > SMALL_MAX:
            raise tarfile.ReadError("the header of an entry is too large")
        return entry


def refuse_existing(path: Path) -> None:
    """Raise NotConfigured unless a new file can be written at ``path``."""
    if path.exists():
        raise NotConfigured(f"{path} exists; choose another name")
    if not path.parent.is_dir():
        raise NotConfigured(f"{path.parent} is not a folder; create it, or choose another one")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise NotConfigured(f"{path.parent} is not writable; choose another folder")


@contextmanager
def working_folder(beside: Path) -> Iterator[Path]:
    """Yield a private folder on the same file system, removed at the end.

    Removes what killed processes have left there: the caller excludes others, by the upgrade lock.
    """
    for leftover in beside.parent.glob(f".{beside.name}.*{PART}"):
        shutil.rmtree(leftover, ignore_errors=True)
        leftover.unlink(missing_ok=True)
    try:
        name = tempfile.mkdtemp(prefix=f".{beside.name}.", suffix=PART, dir=beside.parent)
    except OSError as exc:
        raise NotConfigured(f"{beside.parent}: cannot be written: {exc.strerror}") from exc
    try:
        yield Path(name)
    finally:
        shutil.rmtree(name, ignore_errors=True)


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def write_archive(path: Path, manifest: Manifest, files: Mapping[str, Path]) -> None:
    """Write a backup of the files, named as in the manifest, and read it back before it gets its name.

    Raises NotConfigured if the disk is full, if the file exists, or if it does not read back.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}{PART}")
    try:
        with (
            os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE), "wb") as stream,
            tarfile.open(fileobj=stream, mode="w:gz", compresslevel=LEVEL) as archive,
        ):
            _add(archive, MANIFEST, BytesIO(manifest.to_json()), len(manifest.to_json()), manifest)
            for name, source in files.items():
                with source.open("rb") as content:
                    _add(archive, name, content, source.stat().st_size, manifest)
        _sync(draft)
        check_archive(draft)
        refuse_existing(path)
        draft.rename(path)
        _sync(path.parent)
    except OSError as exc:
        raise NotConfigured(f"{path}: cannot be written: {exc.strerror or exc}") from exc
    finally:
        draft.unlink(missing_ok=True)


def _add(archive: tarfile.TarFile, name: str, content: IO[bytes], size: int, manifest: Manifest) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, MODE, manifest.made_ms // 1000
    archive.addfile(entry, content)


def _sync(path: Path) -> None:
    """Wait until a file or the entries of a folder are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_archive(path: Path) -> Manifest:
    """Return the manifest of a backup whose files are all there and unchanged; raises NotConfigured."""
    with _open(path) as archive:
        manifest = read_manifest(_stored_manifest(archive, path))
        digests: dict[str, str] = {}
        for number, entry in enumerate(archive):
            if number == ENTRIES_MAX:
                raise tarfile.ReadError(f"more than {ENTRIES_MAX} entries")
            digests[entry.name] = _digest(_content_of(archive, entry))
    bad_names = [name for name, digest in manifest.files.items() if digests.get(name) != digest]
    if bad_names:
        raise NotConfigured(f"{path} is damaged: {', '.join(bad_names)} differs from its checksum")
    return manifest


def _content_of(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> IO[bytes]:
    """Return the content of a plain file; raises tarfile.ReadError for links, folders and anything else."""
    content = archive.extractfile(entry) if entry.isreg() and not entry.issparse() else None
    if content is None:
        raise tarfile.ReadError(f"{entry.name} is not a plain file")
    return content


def _digest(content: IO[bytes]) -> str:
    digest = sha256()
    while part := content.read(SMALL_MAX):
        digest.update(part)
    return digest.hexdigest()


def extract(path: Path, manifest: Manifest, name: str, target: Path) -> None:
    """Write one checked file of a backup to a new file ``target``, readable by its owner only."""
    if name not in manifest.files:  # It has no checksum, though the archive may have a file of this name.
        raise NotConfigured(f"{path} has no {name} that its manifest lists")
    with _open(path) as archive:
        content = _content_of(archive, archive.getmember(name))
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
        with os.fdopen(descriptor, "wb") as stream:
            shutil.copyfileobj(content, stream, SMALL_MAX)
            stream.flush()
            os.fsync(stream.fileno())


def read_secrets(path: Path, manifest: Manifest) -> dict[str, str]:
    """Return the secrets in a backup: name of the file in the home folder -> content."""
    with _open(path) as archive:
        names = [name for name in manifest.files if name.startswith(f"{SECRETS}/")]
        unknown = next((name for name in names if name.removeprefix(f"{SECRETS}/") not in SECRET_FILES), "")
        if unknown:  # Other names are not written: they could lead out of the home folder.
            raise NotConfigured(f"{path} has an unexpected file: {unknown}")
        contents = {name: _content_of(archive, archive.getmember(name)) for name in names}
        return {
            name.removeprefix(f"{SECRETS}/"): content.read(SMALL_MAX).decode().strip()
            for name, content in contents.items()
        }


def stored_manifest(path: Path) -> bytes:
    """Return the manifest of a backup as it is stored there."""
    with _open(path) as archive:
        return _stored_manifest(archive, path)


def _stored_manifest(archive: tarfile.TarFile, path: Path) -> bytes:
    entry = archive.next()
    if entry is None or entry.name != MANIFEST:
        raise NotConfigured(f"{path} is not a backup of this program: it has no manifest")
    return _content_of(archive, entry).read(SMALL_MAX)


@contextmanager
def _open(path: Path) -> Iterator[tarfile.TarFile]:
    """Open a backup; any fault while it is read raises NotConfigured."""
    try:
        with tarfile.open(path, "r:gz", tarinfo=_Entry) as archive:
            yield archive
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError, RecursionError) as exc:
        raise NotConfigured(f"{path} is not a backup of this program, or is damaged: {exc}") from exc
    except OSError as exc:
        raise NotConfigured(f"{exc.filename or path}: {exc.strerror or exc}") from exc
