"""Drift: fields owned by code that were changed elsewhere."""

from typing import Any

from app.domain.code.drift import drift_of
from tests.support.truth_table import truth_table


@truth_table(
    "owned, now, expected",
    [
        ({}, {"owner": "ada"}, {}),
        ({"owner": "ada"}, {"owner": "ada", "handler": "other"}, {}),
        ({"owner": "ada"}, {"owner": "bob"}, {"owner": ("ada", "bob")}),
        ({"owner": "ada"}, {}, {"owner": ("ada", None)}),
        ({"alarm_email": None}, {"alarm_email": ""}, {}),
        ({"tags": []}, {}, {}),
        ({"tags": ["b", "a"]}, {"tags": ("a", "b")}, {}),
        ({"tags": ["a"]}, {"tags": ["a", "b"]}, {"tags": (["a"], ["a", "b"])}),
        ({"children": [9, 10]}, {"children": [10, 9]}, {}),
        ({"timeout_s": 0}, {"timeout_s": 0}, {}),
        ({"timeout_s": 0}, {"timeout_s": 5}, {"timeout_s": (0, 5)}),
        ({"enabled": False}, {"enabled": True}, {"enabled": (False, True)}),
        ({"code": {"a": 1}}, {"code": {"a": 1, "b": 2}}, {}),
        ({"code": {"a": 1}}, {"code": {"a": 2}}, {"code": ({"a": 1}, {"a": 2})}),
        ({"code": {"a": 1}}, {}, {"code": ({"a": 1}, None)}),
        ({"param": " x"}, {"param": "x"}, {"param": (" x", "x")}),
    ],
)
def test_only_owned_fields_with_another_value_drift(
    owned: dict[str, Any], now: dict[str, Any], expected: dict[str, tuple[Any, Any]]
) -> None:
    assert drift_of(owned, now) == expected
