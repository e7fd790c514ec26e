"""Folder as a blob store: a file for each object, synchronised before it has its name."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path, PurePosixPath
from uuid import uuid4

from app.blobs.blob_store import NoBlob, StoredBlob, StoreFull
from app.clock import SECOND_MS

#: beginning of the names of files that are being written
PARTIAL = ".part-"
#: attempts to create a file in a folder that others delete when it is empty
ATTEMPTS = 10
#: errors of a disk without room
_FULL = (errno.ENOSPC, errno.EDQUOT)
#: rights of folders and files: their owner's alone
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600


class Folder:
    """Blob store in a folder, which is created when it is first needed."""

    reads_at_once = 1

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, name: str, content: bytes) -> None:
        """Store an object durably."""
        file = self._file(name)
        partial = file.with_name(f"{PARTIAL}{uuid4().hex}")
        try:
            with os.fdopen(self._create(partial), "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            partial.rename(file)
            _sync_folder(file.parent)
        except OSError as exc:
            partial.unlink(missing_ok=True)
            if exc.errno in _FULL:
                raise StoreFull(str(exc)) from exc
            raise

    def _create(self, file: Path) -> int:
        """Create a file, with the folders above it; return its descriptor."""
        for _ in range(ATTEMPTS):
            new = [*takewhile(lambda folder: folder != self.path and not folder.exists(), file.parents)]
            try:
                file.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
                descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
            except FileNotFoundError:  # Another process has deleted what was the only object of the folder.
                continue
            for folder in new:
                _sync_folder(folder.parent)
            return descriptor
        raise OSError(errno.EAGAIN, "folder deleted again and again", str(file.parent))

    def _file(self, name: str) -> Path:
        """Return the file of an object; raises NoBlob for a name that leads out of the folder."""
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise NoBlob(name)
        return self.path / path

    def get(self, name: str) -> bytes:
        """Return an object."""
        try:
            return self._file(name).read_bytes()
        except FileNotFoundError as exc:
            raise NoBlob(name) from exc

    def get_range(self, name: str, start: int, size: int) -> bytes:
        """Return bytes of an object."""
        try:
            with self._file(name).open("rb", buffering=0) as file:
                file.seek(start)
                return file.read(size)
        except FileNotFoundError as exc:
            raise NoBlob(name) from exc

    def delete(self, names: list[str]) -> None:
        """Delete objects, and the folders that are empty then."""
        folders = set[Path]()
        for name in names:
            with suppress(NoBlob):
                file = self._file(name)
                file.unlink(missing_ok=True)
                folders.add(file.parent)
        for folder in folders:
            self._remove_empty(folder)

    def _remove_empty(self, folder: Path) -> None:
        while folder != self.path and self.path in folder.parents:
            try:
                folder.rmdir()
            except OSError:  # It is not empty, or another process was faster.
                return
            folder = folder.parent

    def list(self, prefix: str) -> Iterator[StoredBlob]:
        """Yield the objects below a folder, also those that are being written."""
        top = self.path / prefix if prefix else self.path
        for folder, _folders, files in os.walk(top):
            for name in files:
                file = Path(folder, name)
                try:
                    status = file.stat()
                except FileNotFoundError:  # It was deleted meanwhile.
                    continue
                written_ms = int(status.st_mtime * SECOND_MS)
                yield StoredBlob(file.relative_to(self.path).as_posix(), status.st_size, written_ms)

    def free_bytes(self) -> int | None:
        """Return how much room the disk has."""
        path = self.path
        while not path.exists() and path != path.parent:
            path = path.parent
        return shutil.disk_usage(path).free


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
