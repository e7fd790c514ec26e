"""Descriptions of cron expressions in words.

Frequent expressions have sentences of their own (app.domain.schedules.sentences), the others those of
cron-descriptor. It does not know the whole dialect, so an expression it would describe wrongly is shown
unchanged. Sentences and names of days and months that its Chinese catalogues lack are added here.
"""

import re
from functools import lru_cache
from typing import Final

from cron_descriptor import ExpressionDescriptor, FormatException, MissingFieldException, Options

from app.domain.schedules.cron import unix
from app.domain.schedules.cron.expression import FIELDS, CronExpression, split_fields
from app.domain.schedules.cron.fields import DAY_OF_WEEK, InvalidCronExpression
from app.domain.schedules.sentences import chinese, english
from app.domain.schedules.sentences.shapes import find_shape

_WRITERS: Final = {"zh_CN": chinese.to_simplified, "zh_TW": chinese.traditional}
_LOCALES: Final = {"zh_CN": "zh_CN", "zh_TW": "zh_TW", "en": "en_US"}
_SUNDAY_FIRST_NAMES: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTH_NAMES: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
#: names that cron-descriptor leaves in English
_CHINESE_NAMES: Final = dict(
    zip(_SUNDAY_FIRST_NAMES, ("周日", "周一", "周二", "周三", "周四", "周五", "周六"), strict=True)
) | {name: f"{month} 月" for month, name in enumerate(_MONTH_NAMES, 1)}
#: sentences that its catalogues lack or translate badly
_SENTENCES: Final[dict[str, dict[str, str]]] = {
    "zh_CN": {
        ", starting {0}": ", 始于 {0}",
        "starting {0}": "始于 {0}",
        ", {0} days before the last day of the month": ", 每月最后一天的前 {0} 天",
        ", on the ": ", 每月的",
        " {0} of the month": "{0}",
        ", every {0} months": ", 每 {0} 个月",
    },
    "zh_TW": {
        ", starting {0}": ", 始於 {0}",
        "starting {0}": "始於 {0}",
        ", {0} days before the last day of the month": ", 每月最後一天的前 {0} 天",
        ", on the ": ", 每月的",
        " {0} of the month": "{0}",
        ", every {0} months": ", 每 {0} 個月",
    },
}

#: English plurals of one; ``31 and 1 minutes`` is right
_ONE: Final = re.compile(r"(?<!and )\b1 (second|minute|hour|day|month|year)s\b")
_EVERY_ONE: Final = re.compile(r"\b(every) 1 (second|minute|hour|day|month|year)s\b", re.IGNORECASE)
#: spaces that Chinese does not have
_BETWEEN_CHARACTERS: Final = re.compile("(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])")
#: how cron-descriptor writes a step of years without an end
_ENDLESS: Final = re.compile(r"(\d{4}) (?:through|到) 9999\b")

#: fields, and items of a field's list, that cron-descriptor describes correctly; 98 and 99 are not numbers
#: here
_PLAIN_FIELD: Final = re.compile(r"\?|L|LW|L-[0-9]+|[0-9]+W|(?:[1-7]|[A-Z]{3})(?:L|#[1-5])")
_PLAIN_ITEM: Final = re.compile(r"(?:\*|(?!9[89])[0-9]+(?:-[0-9]+)?)(?:/[1-9][0-9]*)?|[A-Z]{3}(?:-[A-Z]{3})?")
_PLAIN_WEEKDAY_STEP: Final = re.compile(r"\*/[0-9]+|[^/]*")


@lru_cache(maxsize=4096)
def describe(expression: str, language: str) -> str:
    """Return an expression of five to seven fields in words, or itself if that is not possible.

    Languages: zh_CN, zh_TW, en.
    """
    fields = split_fields(expression)[: len(FIELDS)]
    is_unix = len(fields) == unix.FIELD_COUNT
    try:
        if is_unix:
            unix.check_unix_cron(fields)
        else:
            CronExpression.parse(expression)
    except InvalidCronExpression:
        return expression
    if shape := find_shape(expression):
        return _WRITERS.get(language, english.sentence)(shape)
    weekday = unix.WEEKDAY if is_unix else FIELDS.index(DAY_OF_WEEK)
    if not (all(map(_is_plain, fields)) and _PLAIN_WEEKDAY_STEP.fullmatch(fields[weekday])):
        return expression
    if not is_unix and fields[weekday] == "L":
        fields[weekday] = str(DAY_OF_WEEK.high)
    return _words(fields, _LOCALES.get(language, _LOCALES["en"])) or expression


def _is_plain(text: str) -> bool:
    return bool(_PLAIN_FIELD.fullmatch(text)) or all(map(_PLAIN_ITEM.fullmatch, text.split(",")))


def _words(fields: list[str], locale: str) -> str:
    """Return the words for plain fields; empty if cron-descriptor has none."""
    sunday_is_zero = len(fields) == unix.FIELD_COUNT
    options = Options(
        locale_code=locale, use_24hour_time_format=True, day_of_week_start_index_zero=sunday_is_zero
    )
    try:
        words: str = _Descriptor(" ".join(fields), options).get_full_description()
    except (FormatException, MissingFieldException, LookupError, ValueError):
        return ""
    if locale not in _SENTENCES:
        return _polish_english(words)
    words = _polish_chinese(words)
    return words.replace("周", "週") if locale == "zh_TW" else words


def _polish_english(words: str) -> str:
    """Use the singular for one."""
    words = _ONE.sub(r"1 \1", _EVERY_ONE.sub(r"\1 \2", words))
    return _ENDLESS.sub(r"starting in \1", words)


def _polish_chinese(chinese: str) -> str:
    """Replace the names that are still English, use the full-width comma, and no space between characters."""
    chinese = _ENDLESS.sub(r"\1 年起", chinese)
    words = re.sub("[A-Z][a-z]+", lambda name: _CHINESE_NAMES.get(name[0], name[0]), chinese)
    words = re.sub(r"(始[于於]) 在", r"\1", re.sub(" +", " ", words))
    words = re.sub(r"(^|, )在 (?=\d\d:\d\d(?:,|$))", r"\1", words)
    words = re.sub(r"([仅僅]在 \d{4})$", r"\1 年", words)
    words = words.replace(", 和 ", " 和 ").replace(", ", "，").strip()
    return _BETWEEN_CHARACTERS.sub("", words)


class _Descriptor(ExpressionDescriptor):  # type: ignore[misc]  # published without types
    """cron-descriptor, with our sentences first."""

    def translate(self, message: str) -> str:
        """Return the sentence in the language of the options."""
        sentence: str = _SENTENCES.get(self._options.locale_code, {}).get(message) or super().translate(
            message
        )
        return sentence
