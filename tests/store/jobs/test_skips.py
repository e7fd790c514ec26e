"""Pages of skips."""

from typing import Any

from app.database.engine import read_scope
from app.models.skip import Skip
from app.store.jobs.skips import SkipFilter, list_from
from tests.support.factories import T0, make_job, save


def found(group_ids: list[int] | None = None, limit: int = 10, **wanted: Any) -> list[int]:
    with read_scope() as session:
        skips = list_from(session, SkipFilter(**wanted), group_ids=group_ids, limit=limit)
    return [skip.id for skip in skips]


def test_skips_are_found_by_job_instants_and_groups_the_last_first(database: str) -> None:
    first, second = make_job(), make_job()
    a, b, c = (
        save(
            Skip(
                job_id=job.id,
                from_ms=T0 + start,
                to_ms=T0 + end,
                skipped=1,
                reason="misfire",
                recorded_ms=T0 + end,
            )
        ).id
        for job, start, end in ((first, 0, 10), (second, 5, 20), (first, 30, 40))
    )
    assert found() == [c, b, a]
    assert found(limit=2) == [c, b]
    assert found(after_id=b) == [a]
    assert found(job_id=first.id) == [c, a]
    assert found(group_ids=[second.job_group]) == [b]
    assert found(from_ms=T0 + 11) == [c, b]
    assert found(from_ms=T0 + 10, to_ms=T0 + 29) == [b, a]
    assert found(group_ids=[]) == []
