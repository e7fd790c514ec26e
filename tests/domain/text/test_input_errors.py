"""Collected input errors: order, nested inputs, and errors that end the checks."""

import pytest

from app.domain.text.input_errors import InputErrors
from app.errors import Conflict, InvalidInput


def test_all_errors_are_raised_in_the_order_of_the_checks() -> None:
    errors = InputErrors([InvalidInput("retries", "no number")])
    with errors:
        inner = InputErrors()
        for child in (7, 8):
            with inner:
                raise InvalidInput("children", f"{child} is missing")
        inner.raise_all()
    with errors:
        pass
    with pytest.raises(InvalidInput) as raised:
        errors.raise_all()
    assert [(each.field, each.message) for each in raised.value.errors] == [
        ("retries", "no number"),
        ("children", "7 is missing"),
        ("children", "8 is missing"),
    ]
    assert str(raised.value) == "no number"


def test_another_error_ends_the_checks() -> None:
    errors = InputErrors()
    with pytest.raises(Conflict), errors:
        raise Conflict("in use")
    with errors:
        raise InvalidInput("title", "empty")
    with pytest.raises(InvalidInput, match="empty"), errors:
        raise Conflict("in use")


def test_a_fault_is_not_an_input_error() -> None:
    errors = InputErrors([InvalidInput("title", "empty")])
    with pytest.raises(ZeroDivisionError), errors:
        raise ZeroDivisionError
