"""The syntax of files of settings is that of systemd's EnvironmentFile."""

from pathlib import Path

import pytest

from app.errors import NotConfigured
from app.settings.env_files import parse_env_file, read_env_file, write_setting
from tests.support.truth_table import truth_table


@truth_table(
    "line, value",
    [
        ("A=plain", "plain"),
        ("  A = spaces around  ", "spaces around"),
        ("export A=exported", "exported"),
        ("A=", ""),
        ("A=''", ""),
        ("A='single $HOME \\n'", "single $HOME \\n"),
        ('A="double \\"quoted\\" \\$5 \\x"', 'double "quoted" $5 \\x'),
        ("A=it's # no comment", "it's # no comment"),
        ("A=joined \\\nlines", "joined lines"),
        ("A='two\nlines'", "two\nlines"),
        ("A='one' 'piece'", "onepiece"),
        ("A=back\\\\slash", "back\\slash"),
        ("A=kept\\ ", "kept "),
        ("A=mysql+pymysql://u:p@h/d?charset=utf8mb4", "mysql+pymysql://u:p@h/d?charset=utf8mb4"),
    ],
)
def test_a_value(line: str, value: str) -> None:
    assert parse_env_file(f"# comment\n\n; comment\n{line}\nB=next") == {"A": value, "B": "next"}


def test_the_last_line_counts() -> None:
    assert parse_env_file("A=1\nA=2") == {"A": "2"}


@truth_table(
    "text, problem",
    [
        ("A=1\nXXL_JOB_PORT 80", "line 2: expected NAME=value, found no name before a ="),
        ("\n\n1A=secret", "line 3: expected NAME=value, found the name '1A'"),
        ("xxl-job-token=secret=", "line 1: expected NAME=value, found the name 'xxl-job-token'"),
        ("\N{NO-BREAK SPACE}A=secret", r"line 1: expected NAME=value, found the name '\xa0A'"),
        ("A=two\nlines-of-a-secret==", "line 2: expected NAME=value, found no name before a ="),
        ("=secret", "line 1: expected NAME=value, found the name ''"),
        ("A=1\nB='open\nC=2", "line 2: B: a quote is not closed"),
    ],
)
def test_an_invalid_line_is_named(text: str, problem: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_env_file(text)
    assert str(raised.value) == problem


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "windows.env"
    path.write_bytes(b"\xef\xbb\xbfA=1\r\nB=2\r\n")
    assert read_env_file(path) == {"A": "1", "B": "2"}
    write_setting(path, "A", "3")
    assert read_env_file(path) == {"A": "3", "B": "2"}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotConfigured, match=r"absent\.env: cannot be read: No such file or directory"):
        read_env_file(tmp_path / "absent.env")
    (tmp_path / "bytes.env").write_bytes(b"A=\xff\n")
    with pytest.raises(NotConfigured, match=r"bytes\.env: cannot be read: expected UTF-8"):
        read_env_file(tmp_path / "bytes.env")


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("A=1\nB=2", "x", "B=2\nA=x\n"),
        ("# A=1\n A = 1\nexport A=2\n", "x", "# A=1\nA=x\n"),
        ("", "mysql+pymysql://u:p%40@h/d?charset=utf8mb4", "A=mysql+pymysql://u:p%40@h/d?charset=utf8mb4\n"),
        ("", 'quote " dollar $ \\ #', 'A="quote \\" dollar \\$ \\\\ #"\n'),
    ],
)
def test_a_setting_is_written(before: str, value: str, after: str, tmp_path: Path) -> None:
    path = tmp_path / "env"
    path.write_text(before)
    path.chmod(0o640)
    write_setting(path, "A", value)
    assert path.read_text() == after
    assert parse_env_file(after)["A"] == value
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_setting_of_several_lines_is_left_to_the_operator(tmp_path: Path) -> None:
    path = tmp_path / "env"
    path.write_text(before := "A=one \\\ntwo\nB=2\n")
    with pytest.raises(NotConfigured, match="A cannot be set; set it by hand"):
        write_setting(path, "A", "x")
    assert path.read_text() == before
