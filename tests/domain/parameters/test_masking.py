"""Masking of secrets: what is found in a text, and what stands for it."""

import json

from hypothesis import given
from hypothesis import strategies as st

from app.domain.parameters.masking import Masker, forms_of
from tests.support.truth_table import truth_table

TOKEN = "s3cr3t-täglich"
KEY = "-----BEGIN KEY-----\nshort\nMIIEvQIBADANBg\n-----END KEY-----\n"
QUOTED = 'say "8" \\ times'


@truth_table(
    "secrets, text, masked",
    [
        ({"A": [TOKEN]}, f"x {TOKEN}{TOKEN} y", "x ‹secret A›‹secret A› y"),
        ({"A": [TOKEN]}, TOKEN[:-1], TOKEN[:-1]),
        ({"A": [TOKEN]}, TOKEN.upper(), TOKEN.upper()),
        ({"A": [TOKEN]}, json.dumps({"p": TOKEN}), '{"p": "‹secret A›"}'),
        ({"A": [QUOTED]}, f"{QUOTED} {json.dumps(QUOTED)}", '‹secret A› "‹secret A›"'),
        ({"A": [QUOTED]}, json.dumps(json.dumps({"p": QUOTED})), r'"{\"p\": \"‹secret A›\"}"'),
        ({"A": [QUOTED]}, repr(json.dumps({"p": QUOTED})), """'{"p": "‹secret A›"}'"""),
        ({"A": [f"{QUOTED}'"]}, repr({"p": f"{QUOTED}'"}), "{'p': '‹secret A›'}"),
        ({"A": ["it's mine"]}, repr({"p": "it's mine"}), """{'p': "‹secret A›"}"""),
        ({"A": ["it's mine"]}, repr('"it\'s mine"'), """'"‹secret A›"'"""),
        ({"A": ["https://x/y"]}, r"https:\/\/x\/y", "‹secret A›"),
        ({"A": ["new-value", "old-value"]}, "old-value new-value", "‹secret A› ‹secret A›"),
        ({"A": ["12345678"], "B": ["x12345678y"]}, "x12345678y 12345678", "‹secret B› ‹secret A›"),
        ({"A": ["12345678"], "B": ["5678abcdef"]}, "-12345678abcdef-", "-‹secret B›-"),
        ({"A": ["aaaaaaaa"]}, f"b{'a' * 21}b{'a' * 7}b", f"b‹secret A›b{'a' * 7}b"),
        ({"A": ["  padded-value "]}, "padded-value", "‹secret A›"),
        ({"A": ["x       "]}, "x y", "x y"),
        ({"A": [KEY]}, f"a {KEY}b", "a ‹secret A›\n‹secret A›\n‹secret A›\n‹secret A›\nb"),
        ({"A": [KEY]}, f"a {json.dumps(KEY)} b", r'a "‹secret A›\n" b'),
        ({"A": [KEY]}, "12:00 MIIEvQIBADANBg\n12:00 short", "12:00 ‹secret A›\n12:00 short"),
        ({"A": [KEY]}, " ".join(KEY.split("\n")), "‹secret A› "),
        ({"A": [KEY]}, KEY.replace("\n", "\r\n"), "‹secret A›\r\nshort\r\n‹secret A›\r\n‹secret A›\r\n"),
        ({"A": []}, TOKEN, TOKEN),
        ({}, TOKEN, TOKEN),
    ],
)
def test_values_are_masked(secrets: dict[str, list[str]], text: str, masked: str) -> None:
    assert Masker(secrets.items()).mask(text) == masked


def test_a_masker_shows_no_value() -> None:
    assert repr(Masker([("A", [TOKEN])])) == "Masker(['A'])"
    assert not Masker([("A", [])])


@truth_table(
    "text, count",
    [
        ("a\n", 0),
        ("short\n", 0),
        ("x -----BEGIN KEY-----\n", 1),
        ("-----BEGIN KEY-----\nshort\n", 2),
        ("-----BEGIN KEY-----\nshort\nother\n", 0),
        (KEY, 0),
    ],
)
def test_last_lines_that_begin_a_value_are_counted(text: str, count: int) -> None:
    assert Masker([("A", [KEY])]).open_lines(text) == count


#: few characters, so that values overlap, repeat and begin in the middle of others
SMALL = st.text("ab\n", min_size=8, max_size=14).filter(lambda text: bool(text.strip()))
TEXT = st.text("ab\n", max_size=120)


def masker_of(values: list[str]) -> Masker:
    return Masker((f"S{number}", [value]) for number, value in enumerate(values))


@given(st.lists(SMALL, min_size=1, max_size=3), TEXT, st.data())
def test_no_value_is_left_and_lines_stay_lines(values: list[str], text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text)))
    masked = masker_of(values).mask(f"{text[:place]}{values[0]}{text[place:]}")
    assert masked.count("\n") == text.count("\n") + values[0].count("\n")
    # What stands for a value has none of these characters next to the rest of the text.
    assert not any(form in masked for value in values for form in forms_of(value))
