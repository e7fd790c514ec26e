"""List columns: cells in the order of the table, and columns that readers choose."""

import re
from html import unescape

import pytest

from app.console.ui.lists.columns import TABLES
from app.models.job import Job
from tests.console.pages import submit
from tests.support.console import Console, add_group, add_job
from tests.support.factories import make_log, only_row

DATABASES_ENOUGH = ("sqlite",)

PATHS = {"jobs": "/jobinfo", "logs": "/joblog?range=all"}


def heads(page: str) -> list[str]:
    """Return the titles of the columns of a page's list."""
    row = page.partition("<tbody")[0].rpartition("<thead")[2]
    titles = [re.sub(r"<[^>]*>", " ", cell) for cell in re.findall(r"<th\b.*?</th>", row, re.DOTALL)]
    return [unescape(" ".join(title.split())) for title in titles]


def cells(page: str) -> int:
    """Return the number of cells of the last row."""
    return page.partition("<tbody")[2].partition("</tbody")[0].rpartition("<tr")[2].count("<td")


@pytest.mark.parametrize("choice", ["default", "all", "none"])
def test_a_row_of_runs_has_a_cell_for_each_chosen_column(admin: Console, choice: str) -> None:
    add_job(add_group())
    make_log(only_row(Job), trigger_type="CRON")
    table = TABLES["logs"].cells
    if choice != "default":
        names = [column.name for column in table] if choice == "all" else []
        submit(admin, "/preferences", table="logs", column=names)
    shown = {
        "default": [column for column in table if column.is_default],
        "all": table,
        "none": [column for column in table if not column.can_hide],
    }[choice]
    page = admin.get(PATHS["logs"]).text
    titles = [title.removesuffix(" descending") for title in heads(page)]
    assert titles == [str(column.title) for column in shown]
    assert cells(page) == len(shown)


def test_a_row_of_jobs_has_a_cell_for_each_column(admin: Console) -> None:
    add_job(add_group())
    page = admin.get(PATHS["jobs"]).text
    assert cells(page) == len(heads(page)) == len(TABLES["jobs"].cells)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_the_name_of_a_row_and_its_actions_always_stay(name: str) -> None:
    first, *_, last = TABLES[name].cells
    assert not first.can_hide
    assert last.name == "act"
    assert not last.can_hide
