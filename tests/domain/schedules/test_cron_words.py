"""Cron expressions in words."""

import json
from pathlib import Path

from app.domain.schedules.cron_words import describe
from tests.support.truth_table import truth_table

VECTORS = Path(__file__).parents[2] / "data" / "cron.jsonl"


@truth_table(
    "expression, language, description",
    [
        ("0/5 * * * * ?", "en", "Every 5 seconds"),
        ("0/5 * * * * ?", "zh_CN", "每 5 秒"),
        ("0 0 0 ? * 1", "en", "At 00:00, only on Sunday"),
        ("0 0 0 ? * 1", "zh_CN", "在 00:00，仅在星期日"),
        ("0 0 0 ? * 1", "zh_TW", "在 00:00，僅在星期日"),
        ("0 0 0 ? * L", "en", "At 00:00, only on Saturday"),
        ("0 0 9 * * 1", "en", "0 0 9 * * 1"),
        ("0 9 * * 1", "en", "At 09:00, only on Monday"),
        ("0 9 * * 0", "zh_CN", "在 09:00，仅在星期日"),
        ("0 0/15 9-17 ? * MON-FRI", "en", "Every 15 minutes, between 09:00 and 17:59, Monday through Friday"),
        ("0 0/15 9-17 ? * mon-fri", "zh_CN", "每 15 分钟，在 09:00 和 17:59 之间，星期一到星期五"),
        ("0 0 9 ? * mon,wed,fri", "zh_TW", "在 09:00，僅在星期一，星期三和星期五"),
        ("0 0 9 ? JAN-MAR 2", "zh_CN", "在 09:00，仅在星期一，1 月到 3 月"),
        ("0 0 9 ? * 6L", "zh_CN", "在 09:00，每月的最后一个星期五"),
        ("0 0 12 ? * 6#3", "zh_CN", "在 12:00，每月的第三个星期五"),
        ("0 0 9 L-3 * ?", "zh_CN", "在 09:00，每月最后一天的前 3 天"),
        ("0 0 9 L-3 * ?", "zh_TW", "在 09:00，每月最後一天的前 3 天"),
        ("5/15 * * * * ?", "zh_CN", "每 15 秒，始于每分钟的 5 秒"),
        ("0 0 0 1 1 ? 2030", "zh_CN", "在 00:00，每月的 1 号，仅在 1 月，仅在 2030"),
        ("0 0 0 * * ? 2030 rest of it", "en", "At 00:00, only in 2030"),
        ("* * * * * ?", "unknown", "Every second"),
        ("1 * * * * ?", "en", "At 1 second past the minute"),
        ("0 1/10 * * * ?", "en", "Every 10 minutes, starting at 1 minute past the hour"),
        ("0 1/1 * * * ?", "en", "Every minute, starting at 1 minute past the hour"),
        ("0 21 * * * ?", "en", "At 21 minutes past the hour"),
        ("0 31,1 * * * ?", "en", "At 31 and 1 minutes past the hour"),
        ("0 0 0 1 * ? 2030/2", "en", "At 00:00, on day 1 of the month, every 2 years, starting in 2030"),
        ("0 0 0 1 * ? 2030/2", "zh_CN", "在 00:00，每月的 1 号，每 2 年，2030 年起"),
        ("0 0 0 1 1/3 ?", "zh_CN", "在 00:00，每月的 1 号，每 3 个月"),
        ("0 0 0 1 1/3 ?", "zh_TW", "在 00:00，每月的 1 號，每 3 個月"),
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
        "0 0 99 * * ?",
        "0 0 0 L-3W * ?",
        "0 0 0 ? * 6#3,2",
        "0 0 6/0 * * ?",
        "0 0 8PM * * ?",
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
