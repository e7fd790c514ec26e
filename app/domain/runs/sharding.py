"""Sharding parameter: ``"0/3"`` is the first of three shards."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shard:
    """Shard of a broadcast; any other run is shard 0 of 1."""

    index: int
    total: int

    def __str__(self) -> str:
        return f"{self.index}/{self.total}"


WHOLE = Shard(0, 1)


def parse_shard(text: str | None) -> Shard | None:
    """Parse ``"i/n"``; return None for any other text. Source: XXL-JOB 2.4.1 XxlJobTrigger."""
    if not text:  # Most runs have no shard.
        return None
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    return Shard(int(match[1]), int(match[2])) if match else None
