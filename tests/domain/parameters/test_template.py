"""Templates: what is parsed, what is refused with which text and place, and which names they use."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.parameters.errors import InvalidTemplate, NotFilled
from app.domain.parameters.marked_text import escape
from app.domain.parameters.placeholders import Names
from app.domain.parameters.template import (
    PLACEHOLDERS_MAX,
    TEMPLATE_MAX,
    KnownNames,
    check_names,
    has_placeholder,
    parse,
)
from app.domain.parameters.values import GivenRun
from tests.domain.parameters.values import filled, values, with_result
from tests.support.truth_table import truth_table

#: parts of texts that are nearly placeholders
PARTS = st.sampled_from(
    [
        *(
            "$",
            "$$",
            "${",
            "}",
            "$${",
            ".",
            ":",
            ":-",
            "'",
            "''",
            "@",
            "[",
            "]",
            '["',
            '"]',
            "-",
            '"',
            "\\",
            "{",
            ",",
        ),
        *("time", "-1d", "+12M", ".month", ".first", ".epoch_ms", "@UTC", ":yyyy-MM", "YYYY", "ww", "12345"),
        *(
            "job.id",
            "run.id",
            "var.",
            "secret.",
            "NAME",
            "parent",
            ".result",
            "parents.",
            "a/b",
            "shards.results",
        ),
        *(
            "${time:yyyy}",
            "${var.A}",
            "${secret.B}",
            "${parent.result.x:-1}",
            "${param}",
            "123456",
            "\\u00",
            "é",
        ),
    ]
)
TEXTS = st.one_of(st.text(), st.lists(PARTS, max_size=40).map("".join))


@truth_table(
    "text, expected",
    [
        ("", ""),
        ("plain", "plain"),
        ("$", "$"),
        ("$5 {x} $$", "$5 {x} $$"),
        ("$${HOME}", "${HOME}"),
        ("$$${HOME}", "$${HOME}"),
        ("$${job.id} ${job.id}", "${job.id} 7"),
        ("${job.id}${run.id}", "76317"),
        ("${job.name}: ${shard.index}/${shard.total}", "Close the books: 2/5"),
        ("${var.REGION}-${var.a_1}", "eu-${job.id}"),
        ("${secret.TOKEN}", "${secret.TOKEN}"),
        ("${job.id}}", "7}"),
    ],
)
def test_templates_are_filled_in(text: str, expected: str) -> None:
    changes = {"variables": {"REGION": "eu", "a_1": "${job.id}"}, "shard_index": 2, "shard_total": 5}
    assert filled(text, **changes) == expected


@truth_table(
    "text, message",
    [
        ("${HOME}", "'${HOME}' is not a placeholder; write $${ for a plain ${"),
        ("${}", "'${}' is not a placeholder; write $${ for a plain ${"),
        ("${time}", "'${time}' is not a placeholder; write $${ for a plain ${"),
        ("${timeout:1}", "'${timeout:1}' is not a placeholder; write $${ for a plain ${"),
        ("${job.ids}", "'${job.ids}' is not a placeholder; write $${ for a plain ${"),
        ("${ job.id}", "'${ job.id}' is not a placeholder; write $${ for a plain ${"),
        ("${var.1A}", "'${var.1A}' is not a placeholder; write $${ for a plain ${"),
        (f"${{var.{'A' * 65}}}", f"'${{var.{'A' * 65}}}' is not a placeholder; write $${{ for a plain ${{"),
        ("${secret.}", "'${secret.}' is not a placeholder; write $${ for a plain ${"),
        ("${parents..result}", "'${parents..result}' is not a placeholder; write $${ for a plain ${"),
        ("${parents.app/x}", "'${parents.app/x}' is not a placeholder; write $${ for a plain ${"),
        ("${param.region}", "'${param.region}' is not a placeholder; write $${ for a plain ${"),
        ("${job.id", "'${job.id' has no end; add }"),
        ("${", "'${' has no end; add }"),
        ("${time:yyyy", "'${time:yyyy' has no end; add }"),
        ("${parent.result:-none", "'${parent.result:-none' has no end; add }"),
        ("${time:yyyy-mm-DDD}", "'DDD' in '${time:yyyy-mm-DDD}' is not a letter of a date pattern"),
        ("${time:yyyy-MM-ddTHH}", "'T' in '${time:yyyy-MM-ddTHH}' is not a letter of a date pattern"),
        ("${time:yyyy'}", "''' in '${time:yyyy'}' is not a letter of a date pattern"),
        ("${time:SS}", "'SS' in '${time:SS}' is not a letter of a date pattern"),
        ("${time:YYYY-MM}", "'YYYY' in '${time:YYYY-MM}' is the year of the week; write yyyy"),
        (
            "${time-1q:dd}",
            "'-1q' in '${time-1q:dd}' is not a step; write for example time-1d or time.month.first",
        ),
        (
            "${time.month:dd}",
            "'.month' in '${time.month:dd}' is not a step; write for example time-1d or time.month.first",
        ),
        (
            "${time.month.third:dd}",
            "'.month.third' in '${time.month.third:dd}' is not a step;"
            " write for example time-1d or time.month.first",
        ),
        (
            "${time.month.firsts:dd}",
            "'.month.firsts' in '${time.month.firsts:dd}' is not a step;"
            " write for example time-1d or time.month.first",
        ),
        (
            "${time+123456d:dd}",
            "'+123456d' in '${time+123456d:dd}' is not a step; write for example time-1d or time.month.first",
        ),
        (
            "${time@UTC.day.first:dd}",
            "'.day.first' in '${time@UTC.day.first:dd}' is not a step;"
            " write for example time-1d or time.month.first",
        ),
        (
            "${time@Mars/X:dd}",
            "'Mars/X' is not a known time zone; use a name such as Asia/Shanghai or UTC",
        ),
        (f"${{time{'+1d' * 9}:dd}}", f"'${{time{'+1d' * 9}:dd}}': at most 8 steps"),
        ("${parent.result.}", "'${parent.result.}': write a path as result.rows[0].id"),
        ("${parent.result[x]}", "'${parent.result[x]}': write a path as result.rows[0].id"),
        ("${parent.result[123456]}", "'${parent.result[123456]}': write a path as result.rows[0].id"),
        ("${parent.result:none}", "'${parent.result:none}': write a path as result.rows[0].id"),
        (f"${{parent.result{'.a' * 17}}}", f"'${{parent.result{'.a' * 17}}}': at most 16 steps"),
        (
            "[1${job.id}]",
            "'${job.id}' is only a part of a JSON value; put the whole value in quotes",
        ),
        (
            '{"a": "\\u00${job.id}1"}',
            "'${job.id}' is only a part of a JSON value; put the whole value in quotes",
        ),
        ("${job.id}" * 65, "at most 64 placeholders"),
    ],
)
def test_what_is_wrong_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidTemplate) as raised:
        parse(text)
    assert str(raised.value) == message


def test_an_error_has_its_place() -> None:
    with pytest.raises(InvalidTemplate) as raised:
        parse("a $${x} ${job.id} ${HOME}")
    assert raised.value.position == 18
    with pytest.raises(InvalidTemplate) as raised:
        parse("${job.id}" * 65)
    assert raised.value.position == 64 * 9


def test_a_long_placeholder_is_cut_in_errors() -> None:
    with pytest.raises(InvalidTemplate, match=r"^'\$\{x x{96}…' is not a placeholder"):
        parse("${x\n" + "x" * 5_000 + "}")


def test_as_many_placeholders_steps_and_digits_as_are_allowed() -> None:
    assert filled("${job.id}" * PLACEHOLDERS_MAX) == "7" * PLACEHOLDERS_MAX
    assert filled(f"${{time{'+1d-1d' * 4}+0d:dd}}".replace("+0d", "")) == "20"
    assert filled("${time-00001d:dd}") == "19"
    assert filled(f"${{parent.result{'.a' * 16}:-x}}", **with_result("{}")) == "x"


def test_the_parameter_of_the_run_is_one_of_limits_only() -> None:
    template = parse("${param.region} ${param}", with_param=True)
    assert template.fill(values(own_param='{"region":"eu"}')).text == 'eu {"region":"eu"}'
    with pytest.raises(
        NotFilled, match=r"^parameter not filled: \$\{param.region\}: the parameter is not JSON$"
    ):
        template.fill(values(own_param="region=eu"))
    with pytest.raises(NotFilled, match=r"\$\{param.region\}: the parameter has no region$"):
        template.fill(values(own_param="{}"))


def test_names_are_those_that_have_to_be_read() -> None:
    text = "${var.A} ${var.B} ${var.A} ${secret.T} ${parents.app/x.result} ${parents.7.param} ${time:dd}"
    assert parse(text).names() == Names(
        variables=frozenset("AB"),
        secrets=frozenset("T"),
        parents=frozenset(["app/x", "7"]),
        uses_run_id=False,
        uses_parent=False,
        uses_shards=False,
    )
    names = parse("${run.id} ${parent.param} ${shards.results}").names()
    assert (names.uses_run_id, names.uses_parent, names.uses_shards) == (True, True, True)


@truth_table(
    "text, message",
    [
        ("${var.B}", "'${var.B}': variable B does not exist here"),
        ("${secret.B}", "'${secret.B}': secret B does not exist here"),
        ("${parents.b.result}", "'${parents.b.result}': the job does not run after b"),
    ],
)
def test_unknown_names_are_refused(text: str, message: str) -> None:
    known = KnownNames(variables={"A"}, secrets={"T"}, parents={"app/a", "3"})
    check_names(parse("${var.A} ${secret.T} ${parents.app/a.result} ${parents.3.param}"), known)
    with pytest.raises(InvalidTemplate) as raised:
        check_names(parse(f"$${{x}} {text}"), known)
    assert (str(raised.value), raised.value.position) == (message, 6)


def test_a_text_given_with_a_trigger_has_no_secrets() -> None:
    with pytest.raises(InvalidTemplate) as raised:
        check_names(parse("${secret.T}"), KnownNames(variables=(), secrets=None, parents=()))
    assert str(raised.value) == "'${secret.T}': secrets can only stand in the job's own parameter"


@truth_table(
    "text, expected",
    [
        ("echo ${HOME}", False),
        ("${HOME} ${time:yyyy}", True),
        ("$${time:yyyy}", False),
        ("$${HOME} ${secret.TOKEN}", True),
        ("${time:yyyy", False),
        ("${param.a}", False),
        ("", False),
    ],
)
def test_a_placeholder_is_found(text: str, expected: bool) -> None:
    assert has_placeholder(text) is expected


@given(TEXTS)
def test_an_escaped_text_stays_as_it_is(text: str) -> None:
    assert parse(escape(text)).fill(values()).text == text


@given(TEXTS)
def test_only_errors_of_the_language_are_raised(text: str) -> None:
    try:
        template = parse(text, with_param=True)
    except InvalidTemplate:
        return
    run = values(parent=GivenRun(1, text), variables={"NAME": text, "A": text}, shards=[None], own_param=text)
    with suppress(NotFilled):
        template.fill(run)


@truth_table(
    "part",
    ["${time:'", "${", "${time+1d", "${parent.result:-", '${parent.result["', "${var.A", "${time:yyyy'"],
)
def test_long_texts_take_linear_time(part: str) -> None:
    text = part * 10_000
    with pytest.raises(InvalidTemplate):
        parse(text)
    assert not has_placeholder(text)
    has_placeholder(f"{text}}}")


def test_the_parsed_form_is_kept_for_texts_that_can_be_entered() -> None:
    text = "x" * TEMPLATE_MAX
    assert parse(text) is parse(text)
    assert parse(f"{text}x") is not parse(f"{text}x")
