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
        into: list[Answer] | None = None,
        spoilt: Callable[[Item], None] = lambda _item: None,
    ) -> list[Answer]:
        """Do a group in one transaction; where one item spoils it, its halves by themselves, down to that item: ``spoilt`` hears of it.

        Returns ``into``, which holds what each transaction answered as soon as it is committed. Raises what AWAY names: the
        transactions that are not in ``into`` by then wrote nothing.
        """
        answers = [] if into is None else into
        try:
            in_thread = asyncio.get_running_loop().run_in_executor
            answers.append(
                await in_thread(self._thread, lambda: transact(lambda session: work(session, items)))
            )
        except AWAY:
            raise
        except Exception:
            if len(items) == 1:
                logger.exception("not written item=%r", items[0])
                spoilt(items[0])
            else:
                for half in (items[: len(items) // 2], items[len(items) // 2 :]):
                    await self.write(half, work, into=answers, spoilt=spoilt)
        return answers

    def close(self) -> None:
        """Wait for the group that is being written."""
        self._thread.shutdown(wait=True)
