"""Structures: fields with members of their own are checked by their model and stored as JSON text."""

import pytest
from pydantic import BaseModel, Field

from app.domain.jobs.job_field import JobField, Kind
from app.domain.jobs.structures import stored_structure
from app.errors import InvalidInput
from tests.support.truth_table import truth_table


class Promise(BaseModel):
    """Model of a test."""

    at: str = Field(pattern=r"^\d\d:\d\d$")
    days: int = 1


PROMISES = JobField(Kind.STRUCTURE, "", attribute="promises", default="[]", model=lambda: list[Promise])


@truth_table(
    "text, stored",
    [
        ("", "[]"),
        ("[]", "[]"),
        ('[{"at": "07:30"}]', '[{"at":"07:30","days":1}]'),
        ('[{"days": 3, "at": "07:30"}]', '[{"at":"07:30","days":3}]'),
    ],
)
def test_a_structure_is_stored_with_the_defaults_of_its_model(text: str, stored: str) -> None:
    assert stored_structure(PROMISES, text) == stored


@truth_table(
    "text, places",
    [
        ("[", ["promises"]),
        ("{}", ["promises"]),
        ('[{"at": "07:30"}, {"at": "soon"}]', ["promises.1.at"]),
        ('[{"at": "soon"}, {"days": "many"}]', ["promises.0.at", "promises.1.at", "promises.1.days"]),
    ],
)
def test_an_error_names_the_member(text: str, places: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        stored_structure(PROMISES, text)
    assert [error.field for error in caught.value.errors] == places
    assert all(error.message for error in caught.value.errors)
