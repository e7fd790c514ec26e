"""Counters of an executor."""

import pytest

from executor_client.execution.metrics import Counters


def test_a_counter_without_a_help_text_is_refused() -> None:
    with pytest.raises(KeyError):
        Counters().add("runs_acepted")
