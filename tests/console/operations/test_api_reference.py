"""The page of the API: every operation of the document, with a command that calls it."""

import json
import re
import shlex

from app.api.v1.application import document_json
from app.console.operations.api_reference import _curl
from app.domain.api_reference import read_document
from tests.console.pages import text_of
from tests.support.console import Console


def test_the_page_shows_every_operation(admin: Console) -> None:
    page = admin.get("/help/api")
    document = json.loads(document_json())
    assert page.status_code == 200
    for path, item in document["paths"].items():
        for method in item:
            assert f'data-method="{method.upper()}" data-path="{path}"' in page.text
    for name in read_document(document).objects:
        assert f'id="object-{name.name}"' in page.text


def test_each_operation_has_a_command_to_copy(admin: Console) -> None:
    shown = text_of(admin.get("/help/api"))
    for resource in read_document(json.loads(document_json())).resources:
        for operation in resource.operations:
            command = _curl(operation, "http://localhost/xxl-job-admin/api/v1")
            words = shlex.split(command)
            assert words[-1] == f"http://localhost/xxl-job-admin/api/v1{operation.path}"
            assert " ".join(command.split()) in " ".join(shown.split())
            if operation.body:
                assert isinstance(json.loads(words[words.index("-d") + 1]), dict)


def test_the_help_leads_to_it(admin: Console) -> None:
    assert 'href="/xxl-job-admin/help/api"' in admin.get("/help").text


def test_the_index_leads_to_every_operation(admin: Console) -> None:
    page = admin.get("/help/api").text
    index = page.split('class="side-index api-index"')[1].split("</nav>")[0]
    links = re.findall(r'<a href="#([^"]+)"', index)
    assert len(links) > 60
    assert [anchor for anchor in links if f'id="{anchor}"' not in page] == []
    assert "descriptions of operations" not in page


def test_it_says_in_chinese_that_the_descriptions_are_in_english(admin: Console) -> None:
    page = admin.get("/help/api", headers={"Accept-Language": "zh-CN"}).text
    assert "接口和字段的说明为英文。" in page
    assert ">必填</span>" in page
    assert ">required</span>" not in page
