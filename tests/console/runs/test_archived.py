"""Pages of a run whose executor is gone and whose log is archived."""

from collections.abc import Callable

import pytest

from app.domain.archive.kinds import Missing
from app.models.audit import AuditEntry
from app.models.job import Job
from app.models.log import JobLog
from app.settings.config import Config
from tests.console.pages import submit, text_of
from tests.support.archive import archive, folder_in
from tests.support.console import Console, add_group, add_job
from tests.support.factories import T0, all_rows, only_row

#: no executor listens there
GONE = {"executor_address": "http://127.0.0.1:9/", "handle_code": 500}
AT = "2024-05-01 11:04:05"

WORDS = [
    (
        "en",
        "Lines 3–9 were not kept: the log is longer than 16 MB",
        f"Lines from 12 on were not fetched: the instance did not answer after {AT}",
    ),
    (
        "zh_CN",
        "第 3–9 行未保留：日志超过 16 MB",
        f"从第 12 行起未取得：执行器在 {AT} 之后没有响应",
    ),
    (
        "zh_TW",
        "第 3–9 行未保留：日誌超過 16 MB",
        f"從第 12 行起未取得：執行器在 {AT} 之後沒有回應",
    ),
]


@pytest.fixture
def run(admin: Console, config: Config) -> JobLog:
    add_job(add_group())
    lost = {"state": "partial", "reason": Missing.INSTANCE_GONE.value, "pulled_ms": T0}
    gap = {"gap_from": 3, "gap_to": 9}
    pieces = (["one", "two"], ["x"] * 7, ["ten", "<b>eleven</b>"])
    return archive(folder_in(config.home), only_row(Job), *pieces, run=GONE, **lost, **gap, without=2)


@pytest.mark.parametrize(("language", "gap", "tail"), WORDS, ids=[words[0] for words in WORDS])
def test_the_archive_is_shown_with_what_is_missing(
    admin: Console, run: JobLog, language: str, gap: str, tail: str
) -> None:
    submit(admin, "/account/settings", language=language, time_zone="Asia/Shanghai")
    page, lines = f"/joblog/{run.id}", f"/joblog/{run.id}/lines"
    end = admin.get(f"{lines}?last=1000&from=1").get_json()
    assert (end["from"], end["to"], end["lines"]) == (10, 11, ["ten", "<b>eleven</b>"])
    assert [part["text"] for part in end["missing"]] == [gap, tail]
    assert admin.get(f"{lines}?from=1&to=9").get_json()["lines"] == ["one", "two"]
    assert admin.get(f"{lines}?from=12").get_json()["end"] is True
    plain = text_of(admin.get(f"{page}?plain=1"))
    assert "<b>eleven</b>" in plain
    assert gap in plain
    assert tail in plain
    assert admin.get(f"{page}/log.txt").text == f"one\ntwo\n… [{gap}]\nten\n<b>eleven</b>\n… [{tail}]\n"
    assert tail in text_of(admin.get(f"{page}/note"))


def test_downloads_are_audited(admin: Console, run: JobLog, normal_user: Callable[..., Console]) -> None:
    admin.get(f"/joblog/{run.id}/log.txt")
    assert normal_user(add_group("other", "Other")).get(f"/joblog/{run.id}/log.txt").status_code == 404
    entries = [entry for entry in all_rows(AuditEntry) if entry.action == "log.download"]
    assert [(entry.username, entry.object_id) for entry in entries] == [("admin", run.id)]


def test_scripts_of_xxl_job_get_the_archive_too(admin: Console, run: JobLog) -> None:
    piece = admin.call("/joblog/logDetailCat", logId=run.id, fromLineNum=1)["content"]
    assert (piece["fromLineNum"], piece["toLineNum"], piece["logContent"]) == (1, 2, "one\ntwo\n")
    assert admin.call("/joblog/logDetailCat", logId=run.id, fromLineNum=12)["content"]["end"] is True
