"""The dispatcher's one writing thread: a group of items a transaction."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.orm import Session

from app.db import transact

logger = logging.getLogger(__name__)
Item = TypeVar("Item")
Answer = TypeVar("Answer")
#: the database is away, full or locked: the same work may succeed later
AWAY = (OperationalError, InterfaceError)


class GroupWriter:
    """Writes groups one after the other; ``write`` belongs to an event loop, the rest to anybody."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dispatch-writer")

    async def write(
        self,
        items: Sequence[Item],
        work: Callable[[Session, Sequence[Item]], Answer],
        *,
        spoilt: Callable[[Item], None] = lambda _item: None,
    ) -> list[Answer]:
        """Do a group in one transaction; where one item spoils it, its halves by themselves, down to that item: ``spoilt`` hears of it.

        Raises what AWAY names: then nothing of this call's last transaction is written.
        """
        try:
            in_thread = asyncio.get_running_loop().run_in_executor
            return [await in_thread(self._thread, lambda: transact(lambda session: work(session, items)))]
        except AWAY:
            raise
        except Exception:
            if len(items) == 1:
                logger.exception("not written item=%r", items[0])
                spoilt(items[0])
                return []
        halves = (items[: len(items) // 2], items[len(items) // 2 :])
        return [answer for half in halves for answer in await self.write(half, work, spoilt=spoilt)]

    def close(self) -> None:
        """Wait for the group that is being written."""
        self._thread.shutdown(wait=True)
