"""Cron expressions in words."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from app.domain.enums import ScheduleType
from app.domain.schedules.cron_words import describe
from app.domain.schedules.schedule import Schedule, next_after_ms, next_times
from app.domain.schedules.sentences.shapes import find_shape
from tests.domain.schedules.sentence_reader import rule_of
from tests.support.truth_table import truth_table

VECTORS = Path(__file__).parents[2] / "data" / "cron.jsonl"


@truth_table(
    "expression, english, simplified, traditional",
    [
        ("0 30 2 * * ?", "Daily at 02:30", "每天 02:30", "每天 02:30"),
        ("15 30 2 ? * *", "Daily at 02:30:15", "每天 02:30:15", "每天 02:30:15"),
        ("30 2 * * *", "Daily at 02:30", "每天 02:30", "每天 02:30"),
        ("0 15 3 ? * 1", "Sundays at 03:15", "每周日 03:15", "每週日 03:15"),
        ("0 0 0 ? * L", "Saturdays at 00:00", "每周六 00:00", "每週六 00:00"),
        ("0 9 * * 0", "Sundays at 09:00", "每周日 09:00", "每週日 09:00"),
        ("0 0 8 ? * mon-fri", "Weekdays at 08:00", "工作日 08:00", "工作日 08:00"),
        ("30 2 * * 6,7", "Weekends at 02:30", "每周六、周日 02:30", "每週六、週日 02:30"),
        ("0 0 9 ? * 2-5", "Monday to Thursday at 09:00", "每周一至周四 09:00", "每週一至週四 09:00"),
        (
            "0 0 9 ? * mon,wed,fri",
            "Mondays, Wednesdays and Fridays at 09:00",
            "每周一、周三、周五 09:00",
            "每週一、週三、週五 09:00",
        ),
        (
            "0 0 9,12,18 * * ?",
            "Daily at 09:00, 12:00 and 18:00",
            "每天 09:00、12:00、18:00",
            "每天 09:00、12:00、18:00",
        ),
        ("* * * * * ?", "Every second", "每秒", "每秒"),
        ("0/5 * * * * ?", "Every 5 seconds", "每 5 秒", "每 5 秒"),
        ("0 * * * * ?", "Every minute", "每分钟", "每分鐘"),
        ("0 0/15 * * * ?", "Every 15 minutes", "每 15 分钟", "每 15 分鐘"),
        ("0 0,15,30,45 * * * ?", "Every 15 minutes", "每 15 分钟", "每 15 分鐘"),
        (
            "0 1/10 * * * ?",
            "Every 10 minutes from :01",
            "每 10 分钟，从第 1 分起",
            "每 10 分鐘，從第 1 分起",
        ),
        (
            "0 0/7 * * * ?",
            "Every 7 minutes from :00 of each hour",
            "每小时从第 0 分起，每 7 分钟",
            "每小時從第 0 分起，每 7 分鐘",
        ),
        (
            "0 0/5 9-18 ? * MON-FRI",
            "Every 5 minutes, weekdays 09:00–18:59",
            "每 5 分钟（工作日 09:00–18:59）",
            "每 5 分鐘（工作日 09:00–18:59）",
        ),
        (
            "*/10 9 1 * *",
            "Every 10 minutes, monthly on day 1, 09:00–09:59",
            "每 10 分钟（每月 1 日 09:00–09:59）",
            "每 10 分鐘（每月 1 日 09:00–09:59）",
        ),
        ("0 5 * * * ?", "Hourly at :05", "每小时第 5 分", "每小時第 5 分"),
        ("0 0 * * * ?", "Hourly at :00", "每小时整点", "每小時整點"),
        ("0 1,21 * * * ?", "Hourly at :01 and :21", "每小时第 1、21 分", "每小時第 1、21 分"),
        (
            "0 0 9-11,14-17 ? * 2-6",
            "Hourly at :00, weekdays 09:00–11:59 and 14:00–17:59",
            "每小时整点（工作日 09:00–11:59、14:00–17:59）",
            "每小時整點（工作日 09:00–11:59、14:00–17:59）",
        ),
        ("0 0 0/2 * * ?", "Every 2 hours", "每 2 小时", "每 2 小時"),
        ("0 5 0/2 * * ?", "Every 2 hours at :05", "每 2 小时，从 00:05 起", "每 2 小時，從 00:05 起"),
        ("0 5 1/2 * * ?", "Every 2 hours from 01:05", "每 2 小时，从 01:05 起", "每 2 小時，從 01:05 起"),
        (
            "0 0 8-20/2 * * ?",
            "Every 2 hours, 08:00–20:00",
            "每 2 小时（08:00–20:00）",
            "每 2 小時（08:00–20:00）",
        ),
        ("0 0 0 1 * ?", "Monthly on day 1 at 00:00", "每月 1 日 00:00", "每月 1 日 00:00"),
        ("0 0 9 1,15 * ?", "Monthly on days 1 and 15 at 09:00", "每月 1、15 日 09:00", "每月 1、15 日 09:00"),
        ("0 0 9 1-5 * ?", "Monthly on days 1–5 at 09:00", "每月 1–5 日 09:00", "每月 1–5 日 09:00"),
        ("0 0 0 1 1 ?", "Yearly on 1 January at 00:00", "每年 1 月 1 日 00:00", "每年 1 月 1 日 00:00"),
        (
            "0 0 0 1 1/3 ?",
            "On day 1 of January, April, July and October at 00:00",
            "每年 1、4、7、10 月 1 日 00:00",
            "每年 1、4、7、10 月 1 日 00:00",
        ),
        ("0 0 23 L * ?", "Last day of the month at 23:00", "每月最后一天 23:00", "每月最後一天 23:00"),
        (
            "0 0 9 L-3 * ?",
            "3 days before the last day of the month at 09:00",
            "每月倒数第 4 天 09:00",
            "每月倒數第 4 天 09:00",
        ),
        (
            "0 0 22 LW * ?",
            "Last weekday of the month at 22:00",
            "每月最后一个工作日 22:00",
            "每月最後一個工作日 22:00",
        ),
        (
            "0 0 9 15W * ?",
            "Weekday nearest to day 15 of the month at 09:00",
            "每月最接近 15 日的工作日 09:00",
            "每月最接近 15 日的工作日 09:00",
        ),
        (
            "0 0 9 ? * 6L",
            "Last Friday of the month at 09:00",
            "每月最后一个周五 09:00",
            "每月最後一個週五 09:00",
        ),
        (
            "0 0 9 ? * 2#2",
            "Second Monday of the month at 09:00",
            "每月第 2 个周一 09:00",
            "每月第 2 個週一 09:00",
        ),
        # What the dialect makes of odd fields is what is written.
        ("0 0 6/0 * * ?", "Daily at 06:00", "每天 06:00", "每天 06:00"),
        ("0 0 8PM * * ?", "Daily at 08:00", "每天 08:00", "每天 08:00"),
        ("0 0 99 * * ?", "Hourly at :00", "每小时整点", "每小時整點"),
    ],
)
def test_frequent_expressions_have_sentences_of_their_own(
    expression: str, english: str, simplified: str, traditional: str
) -> None:
    assert describe(expression, "en") == english
    assert describe(expression, "zh_CN") == simplified
    assert describe(expression, "zh_TW") == traditional


TIMES = (
    *("0 30 2", "30 5 0", "0 0 9-18", "0 0/15 *", "0 3/5 9-17", "0 0/7 *", "0 5,50 8-10,14-20", "0 7 1/2"),
    *("0 0 8-20/2", "0 0 0/5", "0/20 * *", "0/10 * 22-23", "0 * 0", "0 0 9,21", "0 10,40 9,12", "0 20 22-2"),
    *("0 0/30 8,12", "0 0-50/10 *", "* * *"),
)
QUARTZ_DAYS = (
    *("* * ?", "? * *", "? * 1", "? * 2-6", "? * SAT,SUN", "? * 2,4,6", "? * 6-2", "? * 3-5", "? * L"),
    *("1 * ?", "29 2 ?", "1,15 1/3 ?", "10-20 * ?", "L * ?", "L-4 * ?", "LW * ?", "15W * ?", "1W * ?"),
    *("? * 6L", "? * 2#2", "? * 7#5", "? * 1-7", "1/1 * ?"),
)
UNIX_DAYS = ("* * *", "* * 0", "* * 7", "* * 1-5", "* * 6-7", "1 * *", "31 12 *", "1-5 6 *", "* * 5-1")


def expressions() -> list[str]:
    quartz = [f"{time} {days}" for time in TIMES for days in QUARTZ_DAYS]
    times = [time.removeprefix("0 ") for time in TIMES if time.startswith("0 ")]
    return quartz + [f"{time} {days}" for time in times for days in UNIX_DAYS]


@truth_table("expression", expressions())
def test_a_sentence_allows_exactly_the_times_of_its_expression(expression: str) -> None:
    if find_shape(expression) is None:
        return
    allows = rule_of(describe(expression, "en"))
    schedule = Schedule(ScheduleType.CRON, expression, "UTC")
    chance = Random(expression)
    year_s = int(datetime(2027, 1, 1, tzinfo=UTC).timestamp())
    starts = [year_s + chance.randrange(365 * 86_400) for _ in range(3)]
    fires = [ms // 1000 for start in starts for ms in next_times(schedule, start * 1000, count=3)]
    near = [fire + shift for fire in fires for shift in (0, 1, 30, 60, -60, 3600, -3600, 86_400, -86_400)]
    assert all(allows(datetime.fromtimestamp(fire, UTC)) for fire in fires)
    for second in [*near, *(start // 60 * 60 for start in starts)]:
        fires_then = next_after_ms(schedule, second * 1000 - 1) == second * 1000
        assert allows(datetime.fromtimestamp(second, UTC)) == fires_then, datetime.fromtimestamp(second, UTC)


def test_most_of_these_expressions_have_a_sentence() -> None:
    shapes = [find_shape(expression) for expression in expressions()]
    assert sum(shape is not None for shape in shapes) > 0.8 * len(shapes)


@truth_table("expression", expressions())
def test_the_chinese_sentences_have_the_numbers_of_the_expression(expression: str) -> None:
    chinese = describe(expression, "zh_CN")
    if find_shape(expression) is None:
        return
    times = re.findall(r"\d\d:\d\d", describe(expression, "en"))
    assert set(times) <= set(re.findall(r"\d\d:\d\d", chinese))
    assert not re.search(r"[\u4e00-\u9fff][0-9]|[0-9][\u4e00-\u9fff]", chinese)
    assert len(describe(expression, "zh_TW")) == len(chinese)


@truth_table(
    "expression, language, description",
    [
        ("0 0 9 * * 1", "en", "0 0 9 * * 1"),
        ("0 0 9 ? JAN-MAR 2", "en", "At 09:00, only on Monday, January through March"),
        ("0 0 9 ? JAN-MAR 2", "zh_CN", "09:00，仅在周一，1 月到 3 月"),
        ("0 0 9 ? JAN-MAR 2", "zh_TW", "09:00，僅在週一，1 月到 3 月"),
        ("5/15 * * * * ?", "zh_CN", "每 15 秒，始于每分钟的 5 秒"),
        ("0 0 0 1 1 ? 2030", "zh_CN", "00:00，每月的 1 号，仅在 1 月，仅在 2030 年"),
        ("0 0 0 * * ? 2030 rest of it", "en", "At 00:00, only in 2030"),
        ("* * * * * ?", "unknown", "Every second"),
        ("1 * * * * ?", "en", "At 1 second past the minute"),
        ("0 1/1 * * * ?", "en", "Every minute, starting at 1 minute past the hour"),
        ("0 31,1,40,50,55 * * * ?", "en", "At 31, 1, 40, 50, and 55 minutes past the hour"),
        ("0 0 0 1 * ? 2030/2", "en", "At 00:00, on day 1 of the month, every 2 years, starting in 2030"),
        ("0 0 0 1 * ? 2030/2", "zh_CN", "00:00，每月的 1 号，每 2 年，2030 年起"),
        ("0 0 9 1/2 * ?", "zh_CN", "09:00，每 2 天"),
    ],
)
def test_expressions_in_words(expression: str, language: str, description: str) -> None:
    assert describe(expression, language) == description


@truth_table(
    "expression",
    [
        "",
        "   ",
        "nonsense",
        "0 0 0 * * *",
        "61 * * * *",
        "0 0 0 L-3W * ?",
    ],
)
def test_an_expression_without_exact_words_is_shown_unchanged(expression: str) -> None:
    assert describe(expression, "zh_CN") == expression


@truth_table("language", ["zh_CN", "zh_TW", "en"])
def test_no_expression_of_the_vectors_is_an_error(language: str) -> None:
    expressions = {json.loads(line)["expr"] for line in VECTORS.read_text(encoding="utf-8").splitlines()}
    described = [
        description
        for expression in expressions
        if (description := describe(expression, language)) != expression
    ]
    assert len(described) > len(expressions) / 2
    assert all(description.strip() for description in described)
    assert language == "en" or not any(
        "day" in description or "ary" in description for description in described
    )
