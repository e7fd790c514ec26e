"""History of a job: entries and the versions that their transactions made."""

from app.domain.jobs.history import Mark, versions_made
from tests.support.truth_table import truth_table


@truth_table(
    "entries, versions, made",
    [
        ([], [Mark(1, "ann")], {}),
        ([Mark(1, "ann", "job.update")], [], {}),
        ([Mark(1, "ann", "job.add")], [Mark(1, "ann")], {0: 0}),
        ([Mark(1, "ann", "job.update")], [Mark(1, "bob")], {}),
        ([Mark(1, "ann", "job.update")], [Mark(2, "ann")], {}),
        ([Mark(1, "", "job.update")], [Mark(1, "")], {}),
        ([Mark(1, "ann", "job.stop"), Mark(1, "ann", "job.update")], [Mark(1, "ann")], {1: 0}),
        # two changes in a millisecond
        ([Mark(1, "ann", "job.update")] * 2, [Mark(1, "ann")] * 2, {0: 0, 1: 1}),
        ([Mark(1, "ann", "job.update")] * 2, [Mark(1, "ann")], {0: 0}),
        # the version of an apply and the state that another program left have no entry
        (
            [Mark(9, "ann", "job.update"), Mark(5, "ann", "job.start"), Mark(1, "ann", "job.add")],
            [Mark(9, "ann"), Mark(8, ""), Mark(7, "ci"), Mark(1, "ann")],
            {0: 0, 2: 3},
        ),
    ],
)
def test_versions_are_found_by_instant_and_user(
    entries: list[Mark], versions: list[Mark], made: dict[int, int]
) -> None:
    assert versions_made(entries, versions) == made
