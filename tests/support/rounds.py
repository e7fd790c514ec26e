"""Jobs of whole installations that run after others, as a save writes them."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Engine, text


def run_after(engine: Engine, job_id: int, predecessor_ids: Sequence[int], **rule: Any) -> None:
    """Let a job run after others; ``rule``: further keys of `runs_after`."""
    value = json.dumps({"jobs": list(predecessor_ids), **rule})
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE xxl_job_info SET runs_after = :value WHERE id = :job"),
            {"job": job_id, "value": value},
        )
        for each in predecessor_ids:
            pair = {"job": job_id, "each": each}
            connection.execute(text("UPDATE xxl_job_info SET has_followers = 1 WHERE id = :each"), pair)
            connection.execute(
                text("INSERT INTO xxl_job_after (job_id, predecessor_id) VALUES (:job, :each)"), pair
            )
