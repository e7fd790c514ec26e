"""Request to plan or apply a document."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.access.permissions import Actor
from app.domain.code.document import Document
from app.settings.config import Network


@dataclass(frozen=True, slots=True)
class CodeRequest:
    """What is to be planned or applied."""

    document: Document
    actor: Actor
    #: managed objects to delete: keys of jobs, ``group:<AppName>`` and ``channel:<name>``
    prune: Sequence[str] = ()
    #: networks the addresses of a manual group must lie in
    networks: tuple[Network, ...] = ()
    #: refuse jobs that a Java admin on the same database cannot read
    readable_by_java: bool = False
    #: an import of the console: it changes values, and code owns what it owned before
    is_import: bool = False
