"""Search of archived logs."""

import itertools
import threading
from pathlib import Path

import pytest

from app.blobs.folder import Folder
from app.domain.access.permissions import Actor, Right, system_actor
from app.errors import InvalidInput, TooManyCalls
from app.services.archive import search
from app.services.archive.search import HitPage, LineQuery, Place, search_logs
from app.store.runs.listing import LogFilter, LogStatus
from tests.support.archive import archive
from tests.support.factories import T0, make_job, make_log

pytestmark = pytest.mark.usefixtures("database")
ADMIN = system_actor("test")


@pytest.fixture
def store(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def look(store: Folder, text: str, *, after: Place | None = None, limit: int = 100, **runs: int) -> HitPage:
    query = LineQuery(text, runs=LogFilter(**runs))  # type: ignore[arg-type]
    return search_logs(query, actor=ADMIN, store=store, limit=limit, after=after)


def places(page: HitPage) -> list[tuple[int, int]]:
    return [(hit.log_id, hit.line) for hit in page.hits]


def test_the_newest_runs_come_first_and_their_lines_in_order(store: Folder) -> None:
    job = make_job()
    first = archive(store, job, ["one needle", "two"], ["three", "a needle, a needle"])
    make_log(job)
    second = archive(store, job, ["needle"], run={"handle_code": 500, "trigger_time": T0 + 5_000})
    page = look(store, "needle")
    assert places(page) == [(second.id, 1), (first.id, 1), (first.id, 4)]
    assert (page.next, page.searched_to_ms) == (None, None)
    hit = page.hits[0]
    assert (hit.job_id, hit.group_id, hit.started_ms, hit.outcome) == (
        job.id,
        job.job_group,
        T0 + 5_000,
        "failed",
    )
    assert page.hits[2].match.marks == ((2, 8), (12, 18))
    assert look(store, "nowhere").hits == []


def test_a_search_goes_on_where_it_has_ended(store: Folder) -> None:
    job = make_job()
    for _ in range(4):
        archive(store, job, ["x", "y x"], ["x"])
    whole, pieces, place = places(look(store, "x")), list[tuple[int, int]](), None
    for _ in range(20):
        page = look(store, "x", limit=5, after=place)
        pieces += places(page)
        place = page.next
        if place is None:
            break
    assert pieces == whole
    assert len(whole) == 12


class Slow(Folder):
    """A store that answers only when as many reads wait as it takes at once."""

    reads_at_once = 3

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.full = threading.Barrier(self.reads_at_once)
        self.reads = list[str]()

    def get(self, name: str) -> bytes:
        """Return an object; raises BrokenBarrierError if one read waits for another."""
        self.reads.append(name)
        self.full.wait(5)
        return super().get(name)


@pytest.mark.parametrize("text", ["needle", "a"])
def test_logs_in_a_bucket_are_read_at_the_same_time(text: str, tmp_path: Path) -> None:
    """With the index and without: its words have less than three bytes."""
    job, store = make_job(), Slow(tmp_path)
    runs = [archive(store, job, ["a needle"], ["no", "a needle"]) for _ in range(6)]
    page = look(store, text)
    assert places(page) == [(run.id, line) for run in reversed(runs) for line in (1, 3)]
    assert len(store.reads) == 12
    first = look(Slow(tmp_path), text, limit=1)
    assert look(Slow(tmp_path), text, after=Place(runs[2].id, 2)).hits == page.hits[7:]
    assert first.hits == page.hits[:1]


def test_a_search_ends_in_time_and_goes_on(store: Folder) -> None:
    job = make_job()
    runs = [archive(store, job, ["x"], ["y"], run={"trigger_time": T0 + n * 1_000}) for n in range(3)]
    clock = itertools.count().__next__
    query = LineQuery("nowhere")
    page = search_logs(
        query, actor=ADMIN, store=store, limit=9, budget_s=2.5, monotonic=lambda: float(clock())
    )
    assert (page.hits, page.next, page.searched_to_ms) == ([], Place(runs[2].id - 1), T0 + 1_000)
    place, visited = page.next, [page.searched_to_ms]
    while place is not None:
        page = search_logs(
            query,
            actor=ADMIN,
            store=store,
            limit=9,
            after=place,
            budget_s=0,
            monotonic=lambda: float(clock()),
        )
        place = page.next
        visited.append(page.searched_to_ms)
        assert len(visited) < 20
    assert list(dict.fromkeys(visited)) == [T0 + 1_000, T0, None]


def test_filters_choose_the_runs(store: Folder) -> None:
    job, other = make_job(), make_job()
    good = archive(store, job, ["x"])
    bad = archive(store, job, ["x"], run={"handle_code": 500, "trigger_time": T0 + 60_000})
    foreign = archive(store, other, ["x"])
    archive(store, job, ["x"], state="purged", chunks=None, size=0)

    def found(**runs: int) -> list[int]:
        return [hit.log_id for hit in look(store, "x", **runs).hits]

    assert found() == [foreign.id, bad.id, good.id]
    assert found(job_id=job.id) == [bad.id, good.id]
    assert found(group_id=other.job_group) == [foreign.id]
    assert found(status=LogStatus.FAILED) == found(status=LogStatus.ONLY_FAILED) == [bad.id]
    assert found(status=LogStatus.SUCCESS, job_id=job.id) == [good.id]
    assert found(from_ms=T0 + 1_000) == [bad.id]
    assert found(to_ms=T0 + 1_000, job_id=job.id) == [good.id]


def test_only_logs_that_the_actor_may_see_are_searched(store: Folder) -> None:
    job, other = make_job(), make_job()
    archive(store, job, ["x"])
    visible = archive(store, other, ["x"])
    rights = {other.job_group: frozenset({Right.VIEW}), job.job_group: frozenset[Right]()}
    actor = Actor(7, "bob", is_admin=False, rights=rights)
    page = search_logs(LineQuery("x"), actor=actor, store=store, limit=9)
    assert places(page) == [(visible.id, 1)]
    query = LineQuery("x", runs=LogFilter(job_id=job.id))
    assert search_logs(query, actor=actor, store=store, limit=9).hits == []


def test_a_chunk_that_is_gone_or_damaged_is_left_out(store: Folder, tmp_path: Path) -> None:
    job = make_job()
    log = archive(store, job, ["x"], ["x"], ["x"])
    first, second, _ = sorted(tmp_path.rglob("*.gz"))
    first.unlink()
    second.write_bytes(b"damaged")
    assert places(look(store, "x")) == [(log.id, 3)]


@pytest.mark.parametrize("text", ["", "x" * 501, "one\ntwo", "\0"])
def test_a_text_that_no_line_has_is_refused(store: Folder, text: str) -> None:
    with pytest.raises(InvalidInput):
        look(store, text)


def test_searches_take_turns(store: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "TURN_S", 0.01)
    for _ in range(search.SEARCHES_MAX):
        search._turns.acquire()
    try:
        with pytest.raises(TooManyCalls):
            look(store, "x")
    finally:
        for _ in range(search.SEARCHES_MAX):
            search._turns.release()
