"""The blob store that the settings name."""

from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from app.blobs.blob_store import BlobStore
from app.blobs.folder import Folder
from app.blobs.s3 import Bucket, require_client
from app.domain.archive.missing import Caps
from app.settings.config import Config
from app.settings.log_archive import FOLDER, S3


def store_of(config: Config) -> BlobStore:
    """Return the blob store of the log archive; nothing is opened or created."""
    url = urlsplit(config.archive.url)
    if url.scheme == S3:
        return Bucket(config.archive.url)
    return Folder(Path(unquote(url.path)) if url.path else config.home / FOLDER)


def check_store(config: Config) -> None:
    """Raise NotConfigured if the store needs what is not installed."""
    if urlsplit(config.archive.url).scheme == S3:
        require_client()


class Archive(NamedTuple):
    """Log archive as readers use it: its store, and how much is kept."""

    blobs: BlobStore
    caps: Caps


def archive_of(config: Config) -> Archive:
    """Return the log archive that the settings name."""
    return Archive(store_of(config), Caps(config.archive.run_mb, config.archive.job_day_mb))
