"""Masking: values of secrets in texts of executors, replaced by ‹secret NAME›.

A value is found as it is, and as JSON and Python write it inside a string, also one in another. Of a value
of several lines each line that is long enough is found by itself too, as loggers put times before lines.
Lines stay lines: what is masked has as many as before, so that those of a log keep their numbers.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from operator import attrgetter
from typing import Final, NamedTuple

from app.domain.parameters.marked_text import secret_label
from app.domain.text.limits import SECRET_MIN

#: text that programs write inside a string as it is
_PLAIN: Final = re.compile(r"[ !#-&(-.0-\[\]-~]*")


class _Span(NamedTuple):
    """Part of a text that occurrences of a form cover; the lower the rank, the longer the form."""

    begin: int
    end: int
    rank: int


class Masker:
    """Values of some secrets, by name; never shows them."""

    __slots__ = ("_forms", "line_ends")

    def __init__(self, secrets: Iterable[tuple[str, Iterable[str]]]) -> None:
        names: dict[str, str] = {}
        for name, values in secrets:
            for value in values:
                for form in forms_of(value):
                    names.setdefault(form, name)
        self._forms = sorted(names.items(), key=lambda item: (-len(item[0]), item[0]))
        #: line ends in the form that has most: so many lines around one decide what of it is masked
        self.line_ends = max((form.count("\n") for form in names), default=0)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def __repr__(self) -> str:
        return f"Masker({sorted({name for _, name in self._forms})!r})"

    def mask(self, text: str) -> str:
        """Return a text with ‹secret NAME› for values; of those that overlap, the longest names the part."""
        spans = sorted(
            _Span(begin, end, rank)
            for rank, (form, _) in enumerate(self._forms)
            for begin, end in _occurrences(text, form)
        )
        parts: list[str] = []
        position = 0
        for group in _overlapping(spans):
            begin, end = group[0].begin, max(span.end for span in group)
            parts += [text[position:begin], self._labels(text, begin, end, group)]
            position = end
        return "".join([*parts, text[position:]])

    def open_lines(self, text: str) -> int:
        """Return how many of the last lines may begin a value that the lines after them continue.

        ``text``: whole lines, with the last line end.
        """
        count = 0
        for form, _ in self._forms:
            line_end = form.find("\n")
            while 0 <= line_end < len(form) - 1:
                if text.endswith(form[: line_end + 1]):
                    count = max(count, form.count("\n", 0, line_end + 1))
                line_end = form.find("\n", line_end + 1)
        return count

    def _labels(self, text: str, begin: int, end: int, spans: list[_Span]) -> str:
        """Return what stands for a part of a text: a label in each line that is not blank."""
        lines = text[begin:end].split("\n")
        begins = list(accumulate((len(line) + 1 for line in lines), initial=begin))
        left = {number for number, line in enumerate(lines) if line.strip()}
        for span in sorted(spans, key=attrgetter("rank")):
            if not left:
                break
            for number in range(bisect_right(begins, span.begin) - 1, bisect_left(begins, span.end)):
                if number in left and span.begin < begins[number + 1] - 1:
                    lines[number] = secret_label(self._forms[span.rank][1])
                    left.remove(number)
        return "\n".join(lines)


def forms_of(value: str) -> list[str]:
    """Return the texts by which a value is found, each once."""
    text = value.strip()
    if len(text) < SECRET_MIN:
        return [value]
    unix = text.replace("\r\n", "\n")
    lines = [line.strip() for line in unix.split("\n")] if "\n" in unix else []
    texts = [text, unix, " ".join(unix.split()) if lines else unix, *lines]
    long_enough = [item for item in dict.fromkeys(texts) if len(item) >= SECRET_MIN]
    return list(dict.fromkeys(form for item in long_enough for form in (item, *_spellings(item))))


def _spellings(text: str) -> Iterator[str]:
    """Yield a text as programs write it inside a string, and what they make of that in another one."""
    if _PLAIN.fullmatch(text):
        return
    for once in dict.fromkeys(_inside_string(text)):
        yield from (once, once.replace("/", "\\/"), *_inside_string(once))


def _inside_string(text: str) -> tuple[str, ...]:
    """Return a text inside a string of JSON, with and without ``\\u``, and of Python.

    Python escapes an apostrophe only beside a quotation mark, which may be in the rest of the string.
    """
    python = repr(text)[1:-1], repr(f'"{text}')[2:-1]
    return json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1], *python


def _occurrences(text: str, form: str) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text that are covered by occurrences of a form, also by overlapping ones."""
    size: Final = len(form)
    begin = text.find(form)
    while begin >= 0:
        last = begin
        while (later := text.rfind(form, last + 1, last + 2 * size - 1)) >= 0:
            last = later
        yield begin, last + size
        begin = text.find(form, last + size)


def _overlapping(spans: Iterable[_Span]) -> Iterator[list[_Span]]:
    """Yield spans, which are in order, in groups that overlap."""
    group: list[_Span] = []
    end = 0
    for span in spans:
        if group and span.begin >= end:
            yield group
            group = []
        end = max(end, span.end) if group else span.end
        group.append(span)
    if group:
        yield group
