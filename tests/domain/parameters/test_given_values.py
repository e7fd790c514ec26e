"""Values of other runs: results, paths, defaults, shards, and what a run does not have."""

from typing import Any

import pytest

from app.domain.parameters.errors import NotFilled
from app.domain.parameters.values import GivenRun
from app.domain.runs.trace_templates import WHYS, find_template
from app.domain.runs.trigger_report import RESULT_CUT, result_of
from tests.domain.parameters.values import filled, with_result
from tests.support.truth_table import truth_table

ROWS = '{"rows": [{"id": 1.50, "name": "a\\"b"}, {"id": -0}], "a.b": {"x y": true}, "none": null, "n": 1E5}'


@truth_table(
    "placeholder, expected",
    [
        ("${parent.result}", ROWS),
        ("${parent.result.rows[0].id}", "1.50"),
        ("${parent.result.rows[0].name}", 'a"b'),
        ("${parent.result.rows[-1].id}", "-0"),
        ("${parent.result.rows[1]}", '{"id":-0}'),
        ("${parent.result.rows}", '[{"id":1.50,"name":"a\\"b"},{"id":-0}]'),
        ('${parent.result["a.b"]["x y"]}', "true"),
        ("${parent.result.none}", ""),
        ("${parent.result.n}", "1E5"),
        ("${parent.result.none:-x}", ""),
        ("${parent.result.other:-x}", "x"),
        ("${parent.result.rows[2].id:-}", ""),
        ("${parent.result.rows[0].id.x:-x}", "x"),
        ("${parent.result.rows.id:-[1]}", "[1]"),
    ],
)
def test_a_path_finds_a_part_of_a_result(placeholder: str, expected: str) -> None:
    assert filled(placeholder, **with_result(ROWS)) == expected


@truth_table(
    "result, placeholder, expected",
    [
        (None, "${parent.result:-none}", "none"),
        ("done", "${parent.result:-none}", "done"),
        ("done", "${parent.result.id:-none}", "none"),
        ("NaN", "${parent.result.id:-none}", "none"),
        ("[" * 100_000, "${parent.result[0]:-deep}", "deep"),
        ("9" * 10_000, "${parent.result}", "9" * 10_000),
        (f"[{'9' * 10_000}]", "${parent.result[0]}", "9" * 10_000),
        ('["\\u0000\\ud800"]', "${parent.result[0]}", "\N{REPLACEMENT CHARACTER}?"),
        ("${secret.X} $${ ${job.id}", "${parent.result}", "${secret.X} $${ ${job.id}"),
    ],
)
def test_results_as_they_come(result: str | None, placeholder: str, expected: str) -> None:
    assert filled(placeholder, **with_result(result)) == expected


@truth_table(
    "placeholder, changes, message",
    [
        ("${parent.result}", {}, "the run has no parent"),
        ("${parent.param}", {}, "the run has no parent"),
        ("${parents.app/x.result}", {}, "the run has no parent"),
        ("${shards.results}", {}, "the run has no parent"),
        ("${parent.result}", with_result(None), "run 41 has no result"),
        ("${parent.result.id}", with_result("done"), "the result of run 41 is not JSON"),
        ("${parent.result.a[0]}", with_result('{"a":[]}'), "the result of run 41 has no a[0]"),
        ("${parent.result[1]}", with_result("[1]"), "the result of run 41 has no [1]"),
        ("${parent.result}", with_result(f"[1]{RESULT_CUT}"), "the result of run 41 was cut"),
        ("${parent.result:-x}", with_result(f"[1]{RESULT_CUT}"), "the result of run 41 was cut"),
        ("${parent.param.id}", with_result("", param="x"), "the parameter is not JSON"),
        ("${parent.param.id}", with_result("", param="{}"), "the parameter has no id"),
        ("${shards.results[2]}", {"shards": [None]}, "the list of the shards has no [2]"),
        ("${shards.results[0].a}", {"shards": [None]}, "the list of the shards has no [0].a"),
        ("${shards.results}", {"shards": [GivenRun(8, f"1{RESULT_CUT}")]}, "the result of run 8 was cut"),
        ("${var.A}", {}, "variable A does not exist"),
        ("${time:dd}", {"time_zone": "Mars/Base"}, "this host has no time zone Mars/Base"),
    ],
)
def test_what_is_missing_is_an_error(placeholder: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(NotFilled) as raised:
        filled(f"a {placeholder}", **changes)
    assert str(raised.value) == f"parameter not filled: {placeholder}: {message}"
    template = find_template(str(raised.value), WHYS)
    assert template is not None
    assert template.msgid == raised.value.message.msgid


@truth_table(
    "placeholder, expected",
    [
        ("${parents.app/a.result.id}", "3"),
        ("${parents.12.result}", "text"),
        ("${parents.12.param}", "given"),
        ("${parents.app/split.result}", '[{"f":"a"},null,"007",null]'),
        ("${parents.app/split.result[0].f}", "a"),
        ("${parents.app/split.result[0]}", '{"f":"a"}'),
        ("${parents.app/split.result[1]}", ""),
        ("${parents.app/split.result[-2]}", "007"),
        ("${parents.app/split.param[0]}", "p"),
        ("${shards.results[0].f}", "a"),
        ("${shards.results[9].f:-none}", "none"),
        ("${shards.results.f:-none}", "none"),
    ],
)
def test_values_of_predecessors_and_their_shards(placeholder: str, expected: str) -> None:
    shards = [GivenRun(1, '{"f": "a"}', "p"), None, GivenRun(3, "007"), GivenRun(4, None)]
    parents = {"app/a": GivenRun(5, '{"id":3}'), "12": GivenRun(6, "text", "given"), "app/split": shards}
    assert filled(placeholder, parents=parents, shards=shards) == expected


@truth_table(
    "message, expected",
    [
        (None, None),
        ("", None),
        ("done", "done"),
        ("done\n>>> child jobs <<<\n1/1 job 7: triggered", "done"),
        (">>> child jobs <<<\n1/1 job 7: triggered", None),
        ("a\n>>> child jobs <<<\nb\n>>> child jobs <<<\nc", "a\n>>> child jobs <<<\nb"),
        ("found >>> child jobs <<< in a text", "found >>> child jobs <<< in a text"),
        ("a\n\n>>> child jobs <<<", "a\n"),
    ],
)
def test_a_result_is_a_message_without_our_lines(message: str | None, expected: str | None) -> None:
    assert result_of(message) == expected
