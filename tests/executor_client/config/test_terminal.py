"""Text for a terminal: control characters of others are not executed."""

from executor_client.config.terminal import printable_log_line
from tests.support.truth_table import truth_table


@truth_table(
    "text, line",
    [
        ("plain\t中\u3000文\xa0😀", "plain\t中\u3000文\xa0😀"),
        ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m\x1b[0m"),
        ("\x1b[38:2:1:2:3mlit", "\x1b[38:2:1:2:3mlit\x1b[0m"),
        ("\x1b]0;title\x07", " ]0;title "),
        ("\x1b[2J\x1b[1A\x1b[?25l", " [2J [1A [?25l"),
        ("\x9b2J\x85", " 2J "),
        ("false\rtrue\b\x7f", "false true  "),
        ("\u202eevil", " evil"),
        ("\x1b[31", " [31"),
    ],
)
def test_a_line_of_a_log_keeps_its_colours_only(text: str, line: str) -> None:
    assert printable_log_line(text) == line
