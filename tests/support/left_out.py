"""Tests that a run leaves out, because the machine lacks a program or package; the summary names them."""

import pytest

left_out_key = pytest.StashKey[list[str]]()
