"""Masked logs: pieces show what the whole shows, wherever they begin and end, and nothing stays back."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.domain.parameters.masking import Masker
from app.executors.gateway import ReadLog
from app.services.run_logs.log_pieces import MaskedRead, last_line, read_masked
from executor_client.wire.protocol import LogRequest, LogResult

KEY = "-----BEGIN KEY-----\nshort\nMIIEvQIBADANBg\n-----END KEY-----\n"
#: few characters, so that values overlap, repeat and begin in the middle of others
SMALL = st.text("ab\n", min_size=8, max_size=14).filter(lambda text: bool(text.strip()))
TEXT = st.text("ab\n", max_size=120)


def masker_of(values: list[str]) -> Masker:
    return Masker((f"S{number}", [value]) for number, value in enumerate(values))


class Log:
    """Log of a run of which an executor returns a few lines a call."""

    def __init__(self, lines: list[str], piece: int) -> None:
        self.lines, self.piece = lines, piece

    def __call__(self, request: LogRequest, *, last_lines: int) -> ReadLog:
        if last_lines:
            first = max(len(self.lines) - last_lines + 1, 1)
            lines = self.lines[first - 1 :]
        else:
            first = request.from_line_num
            lines = self.lines[first - 1 : first - 1 + self.piece]
        text = "".join(f"{line}\n" for line in lines)
        return ReadLog(LogResult(first, first + len(lines) - 1, text, False), None, False)


def read_whole(log: Log, masker: Masker, written: list[int]) -> list[str]:
    """Read a log that grows, from its first line on; ``written``: lines that are there at each call."""
    whole, shown = log.lines, list[str]()
    for count in [*written, *[len(whole)] * (2 * len(whole) + 2)]:
        log.lines = whole[:count]
        how = MaskedRead(masker, has_ended=count == len(whole))
        piece = read_masked(log, LogRequest(1, 0, len(shown) + 1), last_lines=0, how=how).piece
        if (last := last_line(piece)) >= piece.from_line_num:
            assert piece.from_line_num == len(shown) + 1
            shown += piece.log_content.removesuffix("\n").split("\n")
            assert last == len(shown)
    log.lines = whole
    return shown


@given(st.lists(SMALL, min_size=1, max_size=3), TEXT, st.integers(15, 40), st.data())
@example(["bbbbbbbb\na"], "bbbbbbbb\na", 15, None)
def test_a_log_in_pieces_is_masked_as_the_whole(
    values: list[str], text: str, piece: int, data: st.DataObject | None
) -> None:
    """Wherever a piece ends, while the log is written and when it is complete."""
    place = data.draw(st.integers(0, len(text))) if data is not None else 0
    lines = f"{text[:place]}{values[0]}{text[place:]}".removesuffix("\n").split("\n")
    masker = masker_of(values)
    whole = masker.mask("".join(f"{line}\n" for line in lines)).removesuffix("\n").split("\n")
    counts = st.lists(st.integers(0, len(lines)), max_size=6).map(sorted)
    written = data.draw(counts) if data is not None else [1]
    assert read_whole(Log(lines, piece), masker, written) == whole


@given(st.lists(SMALL, min_size=1, max_size=3), TEXT, st.integers(1, 20))
def test_the_end_of_a_log_is_masked_as_the_whole(values: list[str], text: str, count: int) -> None:
    lines = f"{values[0]}{text}".removesuffix("\n").split("\n")
    masker = masker_of(values)
    whole = masker.mask("".join(f"{line}\n" for line in lines)).removesuffix("\n").split("\n")
    how = MaskedRead(masker, has_ended=True)
    piece = read_masked(Log(lines, 500), LogRequest(1, 0, 1), last_lines=count, how=how).piece
    assert piece.log_content.removesuffix("\n").split("\n") == whole[-count:]
    assert (piece.from_line_num, last_line(piece)) == (max(len(lines) - count, 0) + 1, len(lines))


@pytest.mark.parametrize("has_ended", [False, True])
def test_the_end_of_a_log_does_not_stay_back(has_ended: bool) -> None:
    log = Log(["a", "-----BEGIN KEY-----"], 500)
    how = MaskedRead(Masker([("A", [KEY])]), has_ended=has_ended)
    piece = read_masked(log, LogRequest(1, 0, 1), last_lines=0, how=how).piece
    assert piece.log_content == ("a\n‹secret A›\n" if has_ended else "a\n")
