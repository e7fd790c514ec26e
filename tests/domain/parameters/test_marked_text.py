"""Marked text and JSON: no value names a secret or leaves its place in a JSON parameter."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.parameters import filling
from app.domain.parameters.errors import InvalidTemplate, NotFilled
from app.domain.parameters.marked_text import display, fill_secrets, mark, secrets_of, unmark
from app.domain.parameters.placeholders import Secret
from app.domain.parameters.template import parse
from app.domain.parameters.values import GivenRun
from tests.domain.parameters.values import filled, values, with_result
from tests.support.truth_table import truth_table

SECRET = Secret("${secret.TOKEN}", "TOKEN")
#: what could make or unmake a placeholder
PARTS = st.sampled_from(
    ["$", "$$", "${", "{", "}", "secret.TOKEN", "${secret.TOKEN}", "${secret.$TOKEN}", '"', "\\"]
)
HOSTILE = st.one_of(st.text(), st.lists(PARTS, max_size=12).map("".join))


@truth_table(
    "pieces, marked, shown",
    [
        (["a ${x} ", SECRET], "a $${x} ${secret.TOKEN}", "a ${x} ‹secret TOKEN›"),
        (["$", "{secret.TOKEN}"], "$${secret.TOKEN}", "${secret.TOKEN}"),
        (["costs $", SECRET], "costs ${secret.$TOKEN}", "costs $‹secret TOKEN›"),
        (["$$", SECRET, "{}"], "${secret.$$TOKEN}{}", "$$‹secret TOKEN›{}"),
        (["$${", SECRET, SECRET], "$$${${secret.TOKEN}${secret.TOKEN}", "$${‹secret TOKEN›‹secret TOKEN›"),
        ([""], "", ""),
    ],
)
def test_secrets_stay_placeholders(pieces: list[str | Secret], marked: str, shown: str) -> None:
    assert mark(pieces) == marked
    assert display(marked) == shown
    assert fill_secrets(marked, {"TOKEN": "${secret.TOKEN}"}) == shown.replace("‹secret TOKEN›", SECRET.at)
    assert secrets_of(marked) == ({"TOKEN"} if SECRET in pieces else frozenset())


@truth_table("text", ["${secret.}", "${secret.1}", "${secret.A", "${HOME}", "${", f"${{secret.{'A' * 65}}}"])
def test_what_is_no_secret_is_text(text: str) -> None:
    assert fill_secrets(text, {}) == display(text) == unmark(text) == text


@given(st.lists(st.one_of(HOSTILE, st.just(SECRET)), max_size=8))
def test_no_value_names_a_secret(pieces: list[str | Secret]) -> None:
    marked = mark(pieces)
    expected = "".join("<secret>" if isinstance(piece, Secret) else piece for piece in pieces)
    assert display(marked).replace("‹secret TOKEN›", "<secret>") == expected.replace(
        "‹secret TOKEN›", "<secret>"
    )
    assert unmark(marked) == "".join(piece.at if isinstance(piece, Secret) else piece for piece in pieces)
    assert secrets_of(marked) == ({"TOKEN"} if SECRET in pieces else frozenset())


@given(HOSTILE, HOSTILE, HOSTILE)
def test_values_stand_for_themselves(before: str, result: str, after: str) -> None:
    run = values(variables={"A": before, "B": after}, **with_result(result or "x"))
    marked = parse("${var.A}${secret.TOKEN}${parent.result}${var.B}").fill(run).marked_text
    assert secrets_of(marked) == {"TOKEN"}
    sent = fill_secrets(marked, {"TOKEN": "t0ps3cret"})
    if not _is_object_or_array(f"{before}0{result or 'x'}{after}"):
        assert sent == f"{before}t0ps3cret{result or 'x'}{after}".replace("\0", "\N{REPLACEMENT CHARACTER}")


def _is_object_or_array(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


def test_a_secret_that_is_missing_or_sealed_is_an_error() -> None:
    with pytest.raises(NotFilled) as raised:
        fill_secrets("a ${secret.TOKEN}", {})
    assert str(raised.value) == "parameter not filled: ${secret.TOKEN}: secret TOKEN does not exist"
    with pytest.raises(NotFilled) as raised:
        fill_secrets("a ${secret.TOKEN}", {"TOKEN": None})
    assert str(raised.value) == "parameter not filled: ${secret.TOKEN}: secret TOKEN cannot be opened"


def test_too_long_a_text_is_an_error() -> None:
    assert len(filled("${var.A}", variables={"A": "é" * 30_000})) == 30_000
    for text in ("é" * 30_001, "x" * 60_001):
        with pytest.raises(NotFilled, match="^parameter not filled: longer than 60,000 bytes$"):
            filled("${var.A}", variables={"A": text})
    marked = parse("${secret.TOKEN}${var.A}").fill(values(variables={"A": "x" * 59_999})).marked_text
    assert len(fill_secrets(marked, {"TOKEN": "1"})) == 60_000
    with pytest.raises(NotFilled, match="longer than 60,000 bytes"):
        fill_secrets(marked, {"TOKEN": "12"})


def test_no_further_value_is_made_once_a_text_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    write = filling.text_of
    monkeypatch.setattr(filling, "text_of", lambda value: (made.append(value), write(value))[1])
    result = json.dumps(list(range(9_000)))
    with pytest.raises(NotFilled, match="longer than 60,000 bytes"):
        filled("${parent.result[0]}" + "${parent.result}" * 63, **with_result(result))
    assert len(made) == 3


@truth_table(
    "text, expected",
    [
        ('{"a": "${parent.result.s}"}', '{"a": "x\\"\\n"}'),
        ('{"a": ${parent.result.s}}', '{"a": "x\\"\\n"}'),
        ('{"a": ${parent.result.n}, "b": "${parent.result.n}"}', '{"a": 1.0, "b": "1.0"}'),
        ('{"a": ${parent.result.list}}', '{"a": [1,{"b":"\\""}]}'),
        ('{"a": "${parent.result.list}"}', '{"a": "[1,{\\"b\\":\\"\\\\\\"\\"}]"}'),
        ('[${parent.result.none}, "${parent.result.none}"]', '[null, ""]'),
        ('[${parent.result.yes}, "${parent.result.yes}"]', '[true, "true"]'),
        ("[${parent.result.x:-0}, ${parent.result.x:-none}]", '[0, "none"]'),
        ('["${parent.result.x:-0}"]', '["0"]'),
        ("[${job.id}, ${time.epoch_s}, ${time:HH}]", '[7, 1795134615, "08"]'),
        ('{"${job.name}": ${job.name}}', '{"Close the books": "Close the books"}'),
        ('{"a": "\\\\${parent.result.s}"}', '{"a": "\\\\x\\"\\n"}'),
        ('{"a": "$${x}", "b": "}"}', '{"a": "${x}", "b": "}"}'),
        # These are no JSON as a whole.
        ('"${parent.result.s}"', '"x"\n"'),
        ("${parent.result.list}", '[1,{"b":"\\""}]'),
        ('{"a": "${parent.result.s}"', '{"a": "x"\n"'),
        ("{a: ${parent.result.s}}", '{a: x"\n}'),
    ],
)
def test_values_in_json_are_json(text: str, expected: str) -> None:
    result = '{"s": "x\\"\\n", "n": 1.0, "list": [1, {"b": "\\""}], "none": null, "yes": true}'
    assert filled(text, **with_result(result)) == expected


def test_a_result_in_json_is_a_string() -> None:
    assert filled('{"a": ${parent.result}}', **with_result('{"b": 1}')) == '{"a": "{\\"b\\": 1}"}'


def test_secrets_in_json_are_json() -> None:
    template = parse('{"token": "${secret.TOKEN}", "again": ${secret.TOKEN}, "a": ${parent.result.a}}')
    marked = template.fill(values(**with_result('{"a": "${secret.TOKEN}"}'))).marked_text
    sent = fill_secrets(marked, {"TOKEN": 'a"\\${x}'})
    assert json.loads(sent) == {"token": 'a"\\${x}', "again": 'a"\\${x}', "a": "${secret.TOKEN}"}


#: NUL cannot be stored
CLEAN = HOSTILE.map(lambda text: text.replace("\0", ""))
JSON_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), CLEAN
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(CLEAN, inner, max_size=3)),
    max_leaves=6,
)
JSON_PARTS = st.sampled_from(
    [
        "{",
        "}",
        "[",
        "]",
        '"',
        ":",
        ",",
        "1",
        "\\",
        "\\u00",
        '"a":',
        "${parent.result}",
        "${parent.result.a}",
        "${secret.TOKEN}",
        '"${var.A}"',
        "${job.id}",
    ]
)


@given(JSON_VALUES)
def test_json_values_arrive_as_they_are(value: Any) -> None:
    run = values(**with_result(json.dumps({"a": value})))
    marked = parse('{"x": [${parent.result.a}], "t": "${secret.TOKEN}"}').fill(run).marked_text
    assert json.loads(fill_secrets(marked, {"TOKEN": "t"})) == {"x": [value], "t": "t"}


@given(
    st.one_of(
        st.lists(JSON_PARTS, max_size=10).map(lambda parts: f"[{''.join(parts)}]"),
        st.lists(JSON_PARTS, max_size=10).map(lambda parts: f'{{"a": {"".join(parts)}}}'),
    ),
    HOSTILE,
    HOSTILE,
)
def test_json_with_any_value_is_json(text: str, value: str, secret: str) -> None:
    try:
        template = parse(text)
    except InvalidTemplate:
        return
    run = values(parent=GivenRun(1, json.dumps({"a": value})), variables={"A": value})
    sent = fill_secrets(template.fill(run).marked_text, {"TOKEN": secret})
    if template.contexts is not None:
        json.loads(sent)
