"""Job files: YAML, JSON and the former format are read; what is no document is refused with its reason."""

import json

import pytest

from app.database.engine import read_scope
from app.errors import InvalidInput
from app.services.code.job_file import SIZE_MAX, read_file, write_file
from tests.services.code.steps import ADMIN
from tests.support.factories import make_group, make_job

YAML = """group: books
jobs:
  close:
    description: Close the books
    param: "7"
    code: {language: GLUE_PHP, source: "echo ${x}"}
"""


def test_the_formats_of_a_file_make_the_same_document() -> None:
    document = read_file(YAML)
    members = document.jobs["books/close"]
    assert members["code"] == {"language": "GLUE_PHP", "source": "echo ${x}"}
    assert read_file(json.dumps({"format": 1, "jobs": {"books/close": dict(members)}})) == document
    former = {"appname": "books", "jobDesc": "close", "executorParam": "7", "glueType": "GLUE_PHP"}
    read = read_file(json.dumps({"format": 1, "jobs": [former]})).jobs["books/close"]
    assert (read["param"], read["code"]) == ("7", {"language": "GLUE_PHP"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "line 1, column 2"),
        ('{\n  "jobs": {,}\n}', "line 2, column 12"),
        ("[]", "a file is a mapping with jobs"),
        ('{"format": 2, "jobs": {}}', "must be a document"),
        ('{"format": 2, "jobs": [{}]}', "must be a document"),
        ('{"jobs": [{}]}', "must be a document"),
        ('{"format": 1, "jobs": {}}', "contains no jobs"),
        ('{"format": 1, "jobs": []}', "contains no jobs"),
        ("# nothing", "contains no jobs"),
        ('{"format": NaN}', "invalid number"),
        ('{"jobs": ' + "[" * 100_000, "nested too deeply"),
        ('{"jobs": {"a/b": {}, "a/b": {}}}', "a/b is given more than once"),
        ('{"jobs": {"a/b": {"owner": "\\ud800"}}}', "cannot be stored"),
        ("jobs:\n  close: {}", "file:2:3: name the group"),
        ("jobs: {a/b: {param: '${HOME}'}}", "the variable HOME has no value"),
        ("jobs: {a/b: {param: '${env:HOME}'}}", "has no variable HOME"),
        ("jobs: {a/b: {code: {language: GLUE_PHP, file: /etc/hostname}}}", "give its text as source"),
        ("jobs: [", "not valid YAML"),
        ("x" * (SIZE_MAX + 1), "larger than 1048576 bytes"),
    ],
)
def test_an_invalid_file_is_refused_with_place_and_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_file(text)
    assert refused.value.field == "file"
    assert reason in refused.value.message


def test_a_repeated_member_is_named_among_many() -> None:
    members = ",".join(f'"a{number}":1' for number in range(80_000))
    with pytest.raises(InvalidInput, match="a79999 is given more than once"):
        read_file("{" + members + ',"a79999":1}')


@pytest.mark.usefixtures("database")
def test_what_an_export_leaves_out_stands_above_it() -> None:
    group = make_group(app_name="books")
    child = make_job(job_group=group.id, job_desc="child")
    parent = make_job(job_group=group.id, job_desc="parent", child_jobid=str(child.id))
    with read_scope() as session:
        text = write_file(session, [parent.id], actor=ADMIN)
    note = f"# books/parent: children is left out, because this export lacks some: #{child.id}\n"
    assert text.startswith(note)
    assert "children" not in read_file(text).jobs["books/parent"]
