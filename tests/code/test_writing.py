"""Files of an export: read again they are the same document."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor_client.code.loading import Folder, load, load_text
from executor_client.code.writing import write_files, write_text

DOCUMENT: dict[str, Any] = {
    "format": 1,
    "groups": {"sample": {"title": "样本 ${x}", "address_type": "automatic"}, "a/b": {"title": "Channels"}},
    "jobs": {
        "sample/close": {
            "description": "Close: the #books",
            "param": "first ${line}\nsecond\n",
            "timeout_s": 30,
            "enabled": True,
            "owner": "007",
            "not_before": None,
            "tags": ["yes", "null"],
        },
        "sample/mail": {
            "description": "true",
            "code": {"language": "GLUE_SHELL", "source": "#!/bin/bash\necho ${HOME}\r\n\ttab \n"},
        },
        "sample/Mail": {"code": {"language": "GLUE_PYTHON", "source": "", "remark": "four"}},
        "a/b/每日": {"code": {"language": "GLUE_SHELL"}},
    },
    "channels": {
        "Ops": {"kind": "slack", "settings": {"url": "${OPS_URL}"}, "for_all": True},
        "Pager ${1}": {"kind": "mail", "settings": {"addresses": "a@example.com"}, "groups": ["sample"]},
    },
}
VARIABLES = {"channels.Ops.settings.url": "OPS_URL"}


def expected() -> dict[str, Any]:
    ops = {**DOCUMENT["channels"]["Ops"], "settings": {"url": "https://secret"}}
    return {**DOCUMENT, "channels": {**DOCUMENT["channels"], "Ops": ops}}


@pytest.mark.parametrize("is_folder", [True, False])
def test_what_is_written_is_read_as_it_was(tmp_path: Path, is_folder: bool) -> None:
    files = write_files(DOCUMENT, VARIABLES) if is_folder else {"a.yaml": write_text(DOCUMENT, VARIABLES)}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    assert load(Folder(tmp_path, variables={"OPS_URL": "https://secret"})).document == expected()


#: parameters with what could be variables
PARAMS = st.lists(
    st.sampled_from(
        ["$", "$$", "${", "}", "${HOME}", "${time-1d:yyyy}", "${env:A.b}", "${1:-a}", ".", ":", "x{"]
    ),
    max_size=8,
).map("".join)


@given(PARAMS)
def test_a_parameter_is_read_as_it_was(param: str) -> None:
    document = {"jobs": {"sample/close": {"param": param}}}
    assert load_text(write_text(document, {}), "a.yaml").document["jobs"] == document["jobs"]


def test_placeholders_of_a_parameter_are_written_as_they_are() -> None:
    param = "${time-1d:yyyy-MM-dd} ${parent.result:-none} ${HOME} $${var.A}"
    text = write_text({"jobs": {"sample/close": {"param": param, "description": "${time:yyyy}"}}}, {})
    assert "param: ${time-1d:yyyy-MM-dd} ${parent.result:-none} $${HOME} $$${var.A}\n" in text
    assert "description: $${time:yyyy}\n" in text


@pytest.mark.parametrize(
    "text", ["08", "0900", "+089", "-007", "tRUE", "FaLSE", "nULL", "~", "1_000", "0x1F"]
)
def test_texts_that_look_like_other_values_stay_texts(tmp_path: Path, text: str) -> None:
    job = {"param": text, "owner": text, "tags": [text]}
    (tmp_path / "a.yaml").write_text(write_text({"jobs": {"sample/close": job}}, {}), encoding="utf-8")
    assert load(Folder(tmp_path)).document["jobs"]["sample/close"] == job


@pytest.mark.parametrize(
    "text", ["one\x85two", "one\n\x85two\n", "\x85", "one\u2028two\n", "one\r\ntwo", "one \ntwo"]
)
def test_breaks_of_every_kind_stay_in_a_text(tmp_path: Path, text: str) -> None:
    job = {"param": text, "tags": [text]}
    (tmp_path / "a.yaml").write_text(write_text({"jobs": {"sample/close": job}}, {}), encoding="utf-8")
    assert load(Folder(tmp_path)).document["jobs"]["sample/close"] == job


@pytest.mark.parametrize("app_name", ["vars", "Vars", "base", "Base"])
def test_a_group_is_no_folder_of_variables_or_of_what_is_common(tmp_path: Path, app_name: str) -> None:
    code = {"language": "GLUE_SHELL", "source": "echo 1\n"}
    document = {"groups": {app_name: {"title": "x"}}, "jobs": {f"{app_name}/close": {"code": code}}}
    files = write_files(document, {})
    assert sorted(files) == [f"{app_name}-2.yaml", f"{app_name}-2/close.sh"]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    assert load(Folder(tmp_path)).document == {"format": 1, **document, "channels": {}}


def test_code_lies_beside_the_file_of_its_group() -> None:
    files = write_files(DOCUMENT, VARIABLES)
    assert sorted(files) == ["a-b.yaml", "channels.yaml", "sample.yaml", "sample/Mail.py", "sample/mail.sh"]
    assert files["sample/mail.sh"].startswith("#!/bin/bash\n")


def test_files_name_the_schema_that_editors_check_them_by() -> None:
    files = write_files(DOCUMENT, VARIABLES, schema_url="https://jobs.example.com/schema.json")
    line = "# yaml-language-server: $schema=https://jobs.example.com/schema.json"
    assert {text.splitlines()[0] == line for name, text in files.items() if name.endswith(".yaml")} == {True}
