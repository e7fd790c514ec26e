"""Filters of the lists, on every database: substrings in any case, numbers beyond their columns."""

import pytest

from app.database.engine import read_scope
from app.models.user import User
from app.store.accounts import users
from app.store.accounts.users import UserFilter
from app.store.executors import listing as group_lists
from app.store.executors.listing import GroupFilter
from app.store.jobs import listing as job_lists
from app.store.jobs.filtering import JobFilter
from tests.support.factories import make_group, make_job, save

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize("text", ["nightly", "NIGHTLY"])
def test_a_text_is_found_in_any_case(text: str) -> None:
    save(User(username="a Nightly user", password="-", role=0))
    group = make_group(app_name="a-Nightly-app", title="Nightly")
    make_job(
        job_group=group.id,
        job_desc="A Nightly report",
        executor_handler="theNightlyHandler",
        author="Nightly",
    )
    with read_scope() as session:
        for job_filter in (JobFilter(description=text), JobFilter(handler=text), JobFilter(author=text)):
            assert job_lists.list_jobs(session, job_filter, group_ids=None, start=0, length=10).total == 1, (
                job_filter
            )
        for names in (GroupFilter(app_name=text), GroupFilter(title=text)):
            assert group_lists.list_groups(session, names, group_ids=None, start=0, length=10).total == 1, (
                names
            )
        assert users.list_users(session, UserFilter(username=text), start=0, length=10).total == 1


@pytest.mark.parametrize("number", [2**15, 2**31 - 1])
def test_a_number_that_the_column_cannot_hold_is_not_found(number: int) -> None:
    save(User(username="anna", password="-", role=0))
    make_job()
    with read_scope() as session:
        page = job_lists.list_jobs(session, JobFilter(status=number), group_ids=None, start=0, length=10)
        assert page.total == 0
        assert users.list_users(session, UserFilter(role=number), start=0, length=10).total == 0


@pytest.mark.parametrize("name", ["a\x00b", "\ud800"])
def test_a_name_that_cannot_be_stored_is_not_taken(name: str) -> None:
    with read_scope() as session:
        assert not users.is_name_taken(session, name)
