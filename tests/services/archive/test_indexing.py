"""Index of archived logs: what a search finds with it is what it finds without."""

import itertools
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, update

from app.blobs.folder import Folder
from app.clock import HOUR_MS, now_ms
from app.database.engine import session_scope, transact
from app.domain.access.permissions import system_actor
from app.domain.archive.folding import fold
from app.models.archive import LogArchive
from app.models.log import JobLog
from app.services.archive import candidates, indexing
from app.services.archive.indexing import Indexer
from app.services.archive.keeping import OWNER
from app.services.archive.search import LineQuery, Place, search_logs
from app.store.archive import rows
from app.store.archive.segments import EndedLog, find_unindexed, set_segment
from app.store.fires import log_ids
from app.store.runs.listing import LogFilter
from tests.support.archive import archive
from tests.support.factories import T0, all_rows, make_job

pytestmark = pytest.mark.usefixtures("database")
ADMIN = system_actor("test")
WORDS = ["timeout", "Refused", "日志", "归档", "ошибка", "ОШИБКА", "4711", "x", "of", "a-b"]
LOGS = st.lists(
    st.lists(st.lists(st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join), min_size=1, max_size=3)),
    max_size=9,
)


@pytest.fixture
def store(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def indexer(store: Folder, monkeypatch: pytest.MonkeyPatch) -> Indexer:
    """An indexer that makes segments of three logs."""
    monkeypatch.setattr(indexing, "LOGS_MAX", 3)
    return Indexer(store, itertools.count(now_ms()).__next__)


def look(store: Folder, text: str, *, limit: int = 2, **query: bool) -> list[tuple[int, int]]:
    """Return the hits of all pages."""
    places, place = list[tuple[int, int]](), None
    for _ in range(200):
        page = search_logs(LineQuery(text, **query), actor=ADMIN, store=store, limit=limit, after=place)
        places += [(hit.log_id, hit.line) for hit in page.hits]
        place = page.next
        if place is None:
            return places
    raise AssertionError("the search does not end")


def segments_of() -> list[int]:
    return [row.segment for row in all_rows(LogArchive)]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    LOGS,
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(" ".join),
    st.booleans(),
    st.integers(0, 3),
)
def test_a_search_finds_what_a_look_at_all_lines_finds(
    monkeypatch: pytest.MonkeyPatch,
    logs: list[list[list[str]]],
    wanted: str,
    ignores_case: bool,
    built: int,
) -> None:
    monkeypatch.setattr(indexing, "LOGS_MAX", 3)
    monkeypatch.setattr(indexing, "PART_MAX", 20)
    monkeypatch.setattr(candidates, "IDS", 2)
    with session_scope() as session:
        session.execute(delete(LogArchive))
    fitting = fold if ignores_case else str
    with TemporaryDirectory() as folder:
        store, job, expected = Folder(Path(folder)), make_job(), list[tuple[int, int]]()
        for pieces in logs:
            log = archive(store, job, *pieces)
            lines = [line for piece in pieces for line in piece]
            hits = [number for number, line in enumerate(lines, 1) if fitting(wanted) in fitting(line)]
            expected[:0] = [(log.id, number) for number in hits]
        indexer = Indexer(store, itertools.count(now_ms()).__next__)
        for _ in range(built):
            indexer.build()
        assert look(store, wanted, ignores_case=ignores_case) == expected


def test_segments_are_made_of_full_batches_of_ended_runs(store: Folder, indexer: Indexer) -> None:
    job = make_job()
    archive(store, job, ["zero"], state="open")
    for number in range(7):
        archive(store, job, *([[f"word{number}"]] if number % 3 else []))
    assert indexer.tick(now_ms()) == indexing.PAUSE_MS
    assert indexer.tick(now_ms()) == indexing.PAUSE_MS
    assert indexer.tick(now_ms()) == indexing.LOOK_MS
    numbers = segments_of()
    assert [number != 0 for number in numbers] == [False, *[True] * 6, False]
    assert len(set(numbers)) == 3
    assert [len(look(store, f"word{number}")) for number in range(7)] == [0, 1, 1, 0, 1, 1, 0]


def test_the_index_leaves_out_logs_that_cannot_match(
    store: Folder, indexer: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job()
    logs = [archive(store, job, [f"word-{number}"]) for number in range(6)]
    assert indexer.build()
    assert indexer.build()
    names = list[str]()
    get = Folder.get
    monkeypatch.setattr(Folder, "get", lambda self, name: names.append(name) or get(self, name))
    assert look(store, "word-4") == look(store, "word-[4]", is_regex=True)[:1] == [(logs[4].id, 1)]
    assert len(names) < 10
    names.clear()
    assert look(store, "nowhere") == []
    assert names == []


def test_a_log_that_grows_again_is_found(store: Folder, indexer: Indexer) -> None:
    job = make_job()
    logs = [archive(store, job, ["first"]) for _ in range(3)]
    assert indexer.build()
    with session_scope() as session:
        log = rows.find_of_logs(session, [logs[1].id])[logs[1].id]
    further = archive(store, job, ["first"], ["further"])
    with session_scope() as session:
        [more] = [row for row in all_rows(LogArchive) if row.log_id == further.id]
        session.execute(update(LogArchive).where(LogArchive.id == log.id).values(folder=more.folder))
        assert rows.write_pull(session, log, T0, state="complete", next_ms=0, chunks=more.chunks)
    assert look(store, "further") == [(further.id, 2), (logs[1].id, 2)]
    assert look(store, "first") == [(further.id, 1), *[(each.id, 1) for each in reversed(logs)]]


def test_logs_that_change_while_a_segment_is_made_stay_without_it(store: Folder) -> None:
    job = make_job()
    for _ in range(2):
        archive(store, job, ["x"])
    with session_scope() as session:
        logs = find_unindexed(session, limit=9)
    with session_scope() as session:
        session.execute(update(LogArchive).where(LogArchive.id == logs[0].id).values(epoch=9))
    with session_scope() as session:
        assert set_segment(session, logs, 7) == 1
        assert set_segment(session, logs, 8) == 0
        assert set_segment(session, [EndedLog(999, 1, 0, "", None)], 8) == 0
    assert segments_of() == [0, 7]


def test_a_segment_that_is_gone_or_damaged_hides_nothing(
    store: Folder, indexer: Indexer, tmp_path: Path
) -> None:
    job = make_job()
    logs = [archive(store, job, [f"word-{number}"]) for number in range(6)]
    assert indexer.build()
    assert indexer.build()
    first, second = sorted((tmp_path / indexing.FOLDER).iterdir())
    first.unlink()
    second.write_bytes(second.read_bytes()[:-2_000])
    for number, log in enumerate(logs):
        assert look(store, f"word-{number}") == [(log.id, 1)]


def test_what_could_not_be_read_for_a_segment_is_searched_itself(
    store: Folder, indexer: Indexer, tmp_path: Path
) -> None:
    job = make_job()
    logs = [archive(store, job, [f"word-{number}"]) for number in range(3)]
    [file] = (tmp_path / row_of(logs[1]).folder).iterdir()
    content = file.read_bytes()
    file.unlink()
    assert indexer.build()
    store.put(f"{row_of(logs[1]).folder}/{file.name}", content)  # The folder of another node is common now.
    assert look(store, "word-1") == [(logs[1].id, 1)]
    assert look(store, "nowhere") == []


def row_of(log: JobLog) -> LogArchive:
    return next(row for row in all_rows(LogArchive) if row.log_id == log.id)


def test_an_index_that_was_deleted_is_made_again(store: Folder, indexer: Indexer, tmp_path: Path) -> None:
    job = make_job()
    for number in range(3):
        archive(store, job, *([["word"]] if number else []))
    assert indexer.build()
    [file] = (tmp_path / indexing.FOLDER).iterdir()
    file.unlink()
    (file.parent / "notes.txt").write_text("by hand")
    assert indexer.clean(now_ms()) == 0
    assert indexer.clean(now_ms() + 2 * HOUR_MS) == 1
    assert set(segments_of()) == {0}
    assert indexer.build()
    assert len(set(segments_of()) - {0}) == 1
    assert indexer.clean(now_ms() + 2 * HOUR_MS) == 0


def test_segments_of_another_database_are_left_alone(store: Folder, indexer: Indexer) -> None:
    transact(log_ids.make_identity)
    store.put(indexing.name_of(1), b"x")
    store.put(OWNER, b"another")
    assert indexer.clean(now_ms() + 2 * HOUR_MS) == 0
    store.delete([OWNER])
    assert indexer.clean(now_ms() + 2 * HOUR_MS) == 1
    assert store.get(OWNER)


def test_what_was_deleted_is_not_found_and_its_segment_goes(
    store: Folder, indexer: Indexer, tmp_path: Path
) -> None:
    job = make_job()
    logs = [archive(store, job, ["word"]) for _ in range(6)]
    assert indexer.build()
    assert indexer.build()
    with session_scope() as session:
        session.execute(delete(LogArchive).where(LogArchive.log_id <= logs[2].id))
        session.execute(delete(JobLog).where(JobLog.id == logs[3].id))
    assert look(store, "word") == [(logs[5].id, 1), (logs[4].id, 1)]
    assert indexer.clean(now_ms()) == 0
    assert indexer.clean(now_ms() + 2 * HOUR_MS) == 1
    [left] = (tmp_path / indexing.FOLDER).iterdir()
    assert str(segments_of()[0]) in left.name


def test_a_search_goes_on_before_a_segment_that_it_had_no_time_for(store: Folder, indexer: Indexer) -> None:
    job = make_job()
    logs = [archive(store, job, ["word"]) for _ in range(9)]
    while indexer.build():
        pass
    place, count = Place(logs[8].id, 1), 0
    while place is not None:
        page = search_logs(
            LineQuery("nowhere"), actor=ADMIN, store=store, limit=9, after=place, budget_s=-1.0
        )
        place, count = page.next, count + 1
    assert count == 3


def test_a_full_disk_leaves_logs_without_a_segment(
    store: Folder, indexer: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        archive(store, make_job(), ["word"])
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "put", lambda *_: (_ for _ in ()).throw(OSError("no room")))
        assert indexer.tick(now_ms()) == indexing.FAILED_MS
    assert set(segments_of()) == {0}
    assert indexer.tick(now_ms()) == indexing.PAUSE_MS


def test_the_time_of_runs_bounds_a_search(store: Folder, indexer: Indexer) -> None:
    job = make_job()
    logs = [archive(store, job, ["word"], run={"trigger_time": T0 + n * 60_000}) for n in range(6)]
    assert indexer.build()
    assert indexer.build()
    query = LineQuery("word", runs=LogFilter(from_ms=T0 + 60_000, to_ms=T0 + 180_000))
    hits = search_logs(query, actor=ADMIN, store=store, limit=9).hits
    assert [hit.log_id for hit in hits] == [logs[3].id, logs[2].id, logs[1].id]
    query = LineQuery("word", runs=LogFilter(from_ms=T0 + 10_000_000))
    assert search_logs(query, actor=ADMIN, store=store, limit=9).hits == []
