"""List columns: cells in the order of the table, and optional columns the style sheet can hide."""

import re
from html import unescape
from pathlib import Path

import pytest

from app.console.ui.list_columns import TABLES
from app.console.ui.preferences import hideable_columns
from app.models.job import Job
from tests.console.conftest import Console, add_group, add_job
from tests.factories import make_log, only_row

DATABASES_ENOUGH = ("sqlite",)

STYLES = Path(__file__).resolve().parents[3] / "app" / "static" / "css" / "lists.css"
#: lists whose cells bear the title of their column
PATHS = {"logs": "/joblog?range=all"}


@pytest.mark.parametrize("name", sorted(PATHS))
def test_cells_are_in_the_order_of_the_table(admin: Console, name: str) -> None:
    add_job(add_group())
    make_log(only_row(Job))
    page = admin.get(PATHS[name]).text
    titles = [str(column.title) for column in TABLES[name].cells]
    body = page.partition("<tbody>")[2].partition("</tr>")[0]
    assert [unescape(label) for label in re.findall(r'<td[^>]* data-label="([^"]*)"', body)] == titles[:-1]
    assert len(re.findall("<td", body)) == len(titles)
    assert len(re.findall("<th ", page.partition("<tbody>")[0].rpartition("<thead>")[2])) == len(titles)


def test_the_style_sheet_hides_every_optional_column(admin: Console) -> None:
    rules = set(re.findall(r"\.grid\.without-(\d+) > \* > tr > :nth-child\(\1\)", STYLES.read_text()))
    with admin.app.test_request_context("/"):
        positions = {str(column.position) for name in TABLES for column in hideable_columns(name)}
    assert positions <= rules


@pytest.mark.parametrize("name", sorted(TABLES))
def test_the_name_of_a_row_and_its_actions_always_stay(name: str) -> None:
    first, *_, last = TABLES[name].cells
    assert not first.can_hide
    assert last.name == "act"
    assert not last.can_hide
