"""Folder of jobs as code: the document it makes, and errors that name file, line and column."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from executor_client.code import yaml_reading
from executor_client.code.loading import Folder, LoadedFolder, load
from executor_client.code.source_locations import InvalidCode

CLOSE = "group: sample\njobs:\n  close:\n    description: Close the books\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "jobs"


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def loaded(folder: Path, files: Mapping[str, str], *overlays: str, **variables: str) -> LoadedFolder:
    write(folder, files)
    return load(Folder(folder, overlays, variables, {"HOST": "db.example.com"}))


def jobs(folder: Path, files: Mapping[str, str], *overlays: str, **variables: str) -> Any:
    return loaded(folder, files, *overlays, **variables).document["jobs"]


def errors(folder: Path, files: Mapping[str, str], *overlays: str, **variables: str) -> list[str]:
    with pytest.raises(InvalidCode) as raised:
        loaded(folder, files, *overlays, **variables)
    return [str(each).removeprefix(f"{folder}/") for each in raised.value.errors]


def test_all_files_below_a_folder_make_one_document(folder: Path) -> None:
    found = loaded(
        folder,
        {
            "a.yaml": CLOSE,
            "deep/er/b.yml": "groups:\n  sample: {title: Sample}\n  other:\njobs:\n  other/x: {handler: h}\n",
            "channels.yaml": "channels:\n  Ops: {kind: mail, settings: {addresses: ops@example.com}}\n",
            ".hidden/c.yaml": "]",
            "notes.txt": "]",
            "empty.yaml": "# nothing\n",
        },
    )
    assert found.document == {
        "format": 1,
        "groups": {"sample": {"title": "Sample"}, "other": {}},
        "jobs": {"other/x": {"handler": "h"}, "sample/close": {"description": "Close the books"}},
        "channels": {"Ops": {"kind": "mail", "settings": {"addresses": "ops@example.com"}}},
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("30", 30),
        ("'30'", "30"),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("null", None),
        ("", None),
        ("0 0 2 * * ?", "0 0 2 * * ?"),
        ("2030-01-31T08:00:00Z", "2030-01-31T08:00:00Z"),
        ("1.5", "1.5"),
        ("0x1F", "0x1F"),
        ("[a, 2, true]", ["a", 2, True]),
        ("|\n      two\n      lines\n", "two\nlines\n"),
        ("${COUNT}", 30),
        ("'${COUNT}'", "30"),
        ("${REGION}-${env:HOST}", "eu-west-db.example.com"),
        ("$${REGION}", "${REGION}"),
        ("$5 {x}", "$5 {x}"),
    ],
)
def test_values_and_variables(folder: Path, text: str, value: object) -> None:
    files = {"a.yaml": f"group: sample\njobs:\n  a:\n    param: {text}\n"}
    assert jobs(folder, files, COUNT="30", REGION="eu-west") == {"sample/a": {"param": value}}


@pytest.mark.parametrize(
    ("param", "value"),
    [
        ("${time-1d:yyyy-MM-dd} in ${REGION}", "${time-1d:yyyy-MM-dd} in eu-west"),
        ('${parent.result:-{"a": 1}', '${parent.result:-{"a": 1}'),
        ("${var.REGION} ${env:HOST} ${secret.TOKEN}", "${var.REGION} db.example.com ${secret.TOKEN}"),
        ("$${time:yyyy} $$${time:yyyy}", "${time:yyyy} $${time:yyyy}"),
        ("${1:-yesterday}", "${1:-yesterday}"),
        ("${time:'}${REGION}'}", "${time:'}eu-west'}"),
    ],
)
def test_placeholders_of_parameters_stay_as_they_are(folder: Path, param: str, value: str) -> None:
    files = {"a.yaml": f"group: sample\njobs:\n  a:\n    param: >-\n      {param}\n"}
    assert jobs(folder, files, REGION="eu-west") == {"sample/a": {"param": value}}


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("owner: ${time:yyyy}", "${time:yyyy} is not a variable such as"),
        ("param: ${time yyyy}", "${time yyyy} is not a variable such as"),
        ("param: ${env:HOST.x}", "${env:HOST.x} is not a variable such as"),
        ("param: ${parent.result:-${REGION}}", "${ without its }"),
        ("param: ${HOME}", "the variable HOME has no value"),
    ],
)
def test_what_is_neither_variable_nor_placeholder_is_an_error(
    folder: Path, member: str, message: str
) -> None:
    (error,) = errors(folder, {"a.yaml": f"{CLOSE}    {member}\n"}, REGION="eu-west")
    assert message in error


def test_variables_come_from_the_command_line_the_overlay_and_the_base(folder: Path) -> None:
    files = {
        "base/a.yaml": "group: sample\njobs:\n  a: {param: '${A} ${B} ${C}'}\n",
        "base/vars.yaml": "A: base\nB: base\nC: base\n",
        "prod/vars.yaml": "B: prod of ${env:HOST}\nC: prod\n",
    }
    assert jobs(folder, files, "prod", C="given") == {
        "sample/a": {"param": "base prod of db.example.com given"}
    }
    assert jobs(folder, files) == {"sample/a": {"param": "base base base"}}


def test_members_of_an_overlay_replace_those_of_the_base(folder: Path) -> None:
    files = {
        "base/a.yaml": CLOSE + "    tags: [a, b]\n    owner: ann\n",
        "base/channels.yaml": "channels:\n  Ops: {kind: ntfy, settings: {server: 'https://a', topic: t}}\n",
        "prod/b.yaml": "group: sample\njobs:\n  close: {tags: [c]}\n  only: {handler: h}\n",
        "prod/channels.yaml": "channels:\n  Ops: {settings: {server: 'https://b'}}\n",
        "test/c.yaml": "]",
    }
    found = loaded(folder, files, "prod")
    assert found.document["jobs"] == {
        "sample/close": {"description": "Close the books", "tags": ["c"], "owner": "ann"},
        "sample/only": {"handler": "h"},
    }
    assert found.document["channels"]["Ops"]["settings"] == {"server": "https://b", "topic": "t"}
    assert str(found.locations["jobs.sample/close.tags"]).endswith("prod/b.yaml:3:11")
    assert str(found.locations["jobs.sample/close.owner"]).endswith("base/a.yaml:6:5")


def test_code_is_a_file_beside_it_in_which_nothing_is_a_variable(folder: Path) -> None:
    files = {
        "a/jobs.yaml": "group: sample\njobs:\n  a: {code: {language: GLUE_SHELL, file: a.sh}}\n"
        "  b: {code: {language: GLUE_SHELL, source: 'echo ${HOME}', remark: 'for ${REGION}'}}\n",
        "a/a.sh": "echo ${HOME}\n",
    }
    assert jobs(folder, files, REGION="eu") == {
        "sample/a": {"code": {"language": "GLUE_SHELL", "source": "echo ${HOME}\n"}},
        "sample/b": {"code": {"language": "GLUE_SHELL", "source": "echo ${HOME}", "remark": "for eu"}},
    }


def test_a_byte_order_mark_is_no_part_of_the_source(folder: Path) -> None:
    files = {
        "jobs.yaml": "group: sample\njobs:\n  a: {code: {language: GLUE_SHELL, file: a.sh}}\n",
        "a.sh": "\ufeffset -e\n",
    }
    assert jobs(folder, files)["sample/a"]["code"]["source"] == "set -e\n"


def test_anchors_and_merges(folder: Path) -> None:
    files = {
        "a.yaml": "group: s1\njobs:\n  a: &a {owner: ann, retry_count: 2}\n  b: {<<: *a, retry_count: 3}\n"
    }
    assert jobs(folder, files)["s1/b"] == {"owner": "ann", "retry_count": 3}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"a.yaml": CLOSE + "    shedule: x\n"},
            ["a.yaml:5:5: jobs.sample/close: there is no member shedule; did you mean schedule?"],
        ),
        ({"a.yaml": "job: {}\n"}, ["a.yaml:1:1: there is no member job; did you mean jobs?"]),
        (
            {"a.yaml": CLOSE + "    param: ${REGION}\n"},
            [
                "a.yaml:5:12: the variable REGION has no value:"
                " add it to vars.yaml, or give --var REGION=VALUE"
            ],
        ),
        ({"a.yaml": CLOSE + "    param: ${env:NO}\n"}, ["a.yaml:5:12: the environment has no variable NO"]),
        (
            {"a.yaml": CLOSE + "    param: '${x'\n"},
            ["a.yaml:5:12: ${ without its }; write $${ for a literal ${"],
        ),
        (
            {"a.yaml": CLOSE, "b.yaml": CLOSE},
            ["b.yaml:3:3: jobs.sample/close is defined twice, first at FOLDER/a.yaml:3:3"],
        ),
        (
            {"a.yaml": CLOSE + "    owner: a\n    owner: b\n"},
            ["a.yaml:6:5: owner is given twice, first in line 5"],
        ),
        (
            {"a.yaml": "jobs:\n  close: {}\n"},
            ["a.yaml:2:3: name the group of this file (group: …), or write <AppName>/close"],
        ),
        ({"a.yaml": "jobs: [a]\n"}, ["a.yaml:1:7: jobs is a mapping of keys to their members"]),
        ({"a.yaml": "jobs:\n  s/a: 5\n"}, ["a.yaml:2:8: jobs.s/a is a mapping of members"]),
        ({"a.yaml": "- a\n"}, ["a.yaml:1:1: a file is a mapping with jobs, groups, calendars or channels"]),
        ({"a.yaml": "jobs: [\n"}, ["a.yaml:2:1: not valid YAML: did not find expected node content"]),
        (
            {"a.yaml": CLOSE + "    code: {language: GLUE_SHELL, file: ../out.sh}\n"},
            ["a.yaml:5:40: ../out.sh lies outside of FOLDER"],
        ),
        (
            {"a.yaml": CLOSE + "    code: {language: GLUE_SHELL, file: gone.sh}\n"},
            ["a.yaml:5:40: gone.sh cannot be read: No such file or directory"],
        ),
        (
            {"a.yaml": CLOSE + "    code: {file: a.sh, source: a}\n", "a.sh": ""},
            ["a.yaml:5:12: jobs.sample/close.code: name either file or source"],
        ),
        (
            {"b.yaml": "x: 1\n", "a.yaml": "y: 1\nz: 2\n"},
            [
                "a.yaml:1:1: there is no member y; known members: group, jobs, groups, calendars, channels",
                "a.yaml:2:1: there is no member z; known members: group, jobs, groups, calendars, channels",
                "b.yaml:1:1: there is no member x; known members: group, jobs, groups, calendars, channels",
            ],
        ),
        ({"a.yaml": CLOSE + "    param: !x 1\n"}, ["a.yaml:5:12: the tag !x is not supported"]),
        (
            {"a.yaml": CLOSE + "    param: !!python/name:os.system x\n"},
            ["a.yaml:5:12: the tag tag:yaml.org,2002:python/name:os.system is not supported"],
        ),
        (
            {"a.yaml": CLOSE + "    param: ${env:XXL_JOB_TOKEN}\n"},
            ["a.yaml:5:12: XXL_JOB_TOKEN is a setting of this program and may be secret"],
        ),
        ({"vars.yaml": "A: [1]\n", "a.yaml": CLOSE}, ["vars.yaml:1:4: the variable A must be one value"]),
    ],
)
def test_errors_name_file_line_and_column_all_at_once(
    folder: Path, files: Mapping[str, str], expected: list[str]
) -> None:
    assert errors(folder, files) == [each.replace("FOLDER", str(folder)) for each in expected]


def nested(first: str, level: str) -> str:
    """Return YAML in which each of 12 values has the one before ten times."""
    levels = [level.format(number, ", ".join([f"*x{number - 1}"] * 10)) for number in range(1, 12)]
    return f"a: &x0 {first}\n" + "\n".join(levels)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (nested("[]", "a{0}: &x{0} [{1}]"), "more than 10000 values"),
        (nested("{}", "a{0}: &x{0} {{<<: [{1}]}}"), "more than 10000 values"),
        ("jobs: &a [*a]", "nested deeper than 50 levels"),
        ("jobs: {a: &a {<<: &b {<<: *a}}}", "nested deeper than 50 levels"),
        ("jobs: " + "[" * 500_000, "line 1: nested deeper than 50 levels"),
    ],
    ids=["aliases", "merges", "itself", "merges itself", "brackets"],
)
def test_values_without_end_are_an_error(
    folder: Path, text: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml_reading, "VALUES_MAX", 10_000)
    (found,) = errors(folder, {"a.yaml": text})
    assert problem in found


def test_links_do_not_lead_out_of_the_folder(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text("A: hidden\n")
    write(folder, {"a.yaml": CLOSE + "    code: {language: GLUE_SHELL, file: a.sh}\n"})
    for name in ("a.sh", "vars.yaml", "b.yaml"):
        (folder / name).symlink_to(secret)
    assert errors(folder, {}) == [
        "a.yaml:5:40: a.sh lies outside of " + str(folder),
        "b.yaml: leads outside of " + str(folder),
        "vars.yaml: leads outside of " + str(folder),
    ]


def test_code_comes_from_files_alone(folder: Path) -> None:
    write(folder, {"a.yaml": CLOSE + "    code: {language: GLUE_SHELL, file: a.sh}\n"})
    os.mkfifo(folder / "a.sh")
    assert errors(folder, {}) == ["a.yaml:5:40: a.sh is not a file"]
    write(folder, {"a.yaml": CLOSE + f"    code: {{language: GLUE_SHELL, file: {'a' * 300}.sh}}\n"})
    assert errors(folder, {})[0].endswith(".sh cannot be read: File name too long")


@pytest.mark.parametrize(
    ("files", "overlays", "problem"),
    [
        ({"a.yaml": CLOSE}, ["prod"], "overlays need a folder base with what is common to all"),
        ({"base/a.yaml": CLOSE, "test/b.yaml": ""}, ["prod"], "there is no overlay prod; known: test"),
        ({"notes.txt": ""}, [], "has no YAML file"),
    ],
)
def test_a_folder_that_cannot_be_used(
    folder: Path, files: Mapping[str, str], overlays: list[str], problem: str
) -> None:
    assert errors(folder, files, *overlays) == [f"{folder}: {problem}"]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("document.jobs.sample/v1.2.timeout_s", "a.yaml:4:5: jobs.sample/v1.2.timeout_s: wrong"),
        ("jobs.sample/v1.2.tags.1", "a.yaml:5:15: jobs.sample/v1.2.tags.1: wrong"),
        ("jobs.sample/v1.2.handler", "a.yaml:3:3: jobs.sample/v1.2.handler: wrong"),
        ("document.jobs.sample/v1.2", "a.yaml:3:3: jobs.sample/v1.2: wrong"),
        ("prune", "prune: wrong"),
    ],
)
def test_errors_of_the_console_name_their_places(folder: Path, field: str, text: str) -> None:
    files = {"a.yaml": "group: sample\njobs:\n  v1.2:\n    timeout_s: x\n    tags: [a, b]\n"}
    assert str(loaded(folder, files).error(field, "wrong")).removeprefix(f"{folder}/") == text
