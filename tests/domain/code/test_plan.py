"""Plan of jobs as code: what counts as a change, and what of it is shown."""

from difflib import unified_diff
from typing import Any

import pytest

from app.domain.code.plan import (
    DIFF_LINES,
    Action,
    FieldChange,
    ObjectPlan,
    Plan,
    change_of,
    changed_fields,
    code_diff,
)
from tests.support.truth_table import truth_table


@truth_table(
    "wanted, current, owned, changes",
    [
        ({"owner": "ann"}, {"owner": "ann"}, {}, []),
        ({"owner": "ann"}, {"owner": "bob", "param": "x"}, {}, [("owner", "bob", "ann", False)]),
        ({"owner": "ann"}, {"owner": "bob"}, {"owner": "ann"}, [("owner", "bob", "ann", True)]),
        ({"owner": "ann"}, {"owner": "bob"}, {"owner": "bob"}, [("owner", "bob", "ann", False)]),
        ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, {}, []),
    ],
)
def test_changed_fields(
    wanted: dict[str, Any], current: dict[str, Any], owned: dict[str, Any], changes: list[Any]
) -> None:
    assert list(changed_fields(wanted, current, owned)) == changes


@truth_table(
    "fields, applied, owned, is_adopted, expected",
    [
        ([], {"owner": "ann"}, {"owner": "ann"}, False, None),
        ([], {"owner": "ann"}, {}, False, (Action.UPDATE, ("owner",), ())),
        ([], {"param": ""}, {}, False, (Action.UPDATE, ("param",), ())),
        ([], {}, {"owner": "ann"}, False, (Action.UPDATE, (), ("owner",))),
        ([], {"owner": "ann"}, {"owner": "bob"}, False, (Action.UPDATE, ("owner",), ())),
        ([], {"owner": "ann"}, {}, True, (Action.ADOPT, (), ())),
        (
            [FieldChange("owner", "bob", "ann")],
            {"owner": "ann"},
            {"owner": "bob"},
            False,
            (Action.UPDATE, (), ()),
        ),
    ],
)
def test_a_field_changes_its_owner(
    fields: list[FieldChange],
    applied: dict[str, Any],
    owned: dict[str, Any],
    is_adopted: bool,
    expected: tuple[Action, tuple[str, ...], tuple[str, ...]] | None,
) -> None:
    plan = change_of(("job", "sample/close", 7), fields, applied, owned, is_adopted=is_adopted)
    assert (plan and (plan.action, plan.owned_names, plan.released_names)) == expected


def test_the_hash_counts_secrets_but_no_times() -> None:
    def digest(mark: str, next_after: tuple[int, ...]) -> str:
        change = FieldChange("settings.url", "***", "***", mark=mark)
        plan = ObjectPlan("channel", "Ops", Action.UPDATE, 1, (change,), next_after=next_after)
        return Plan((plan,)).digest

    assert digest("a", ()) == digest("a", (1,))
    assert digest("a", ()) != digest("b", ())


def test_a_plan_as_json() -> None:
    plan = ObjectPlan("job", "sample/a", Action.UPDATE, 7, next_before=(1_000,), next_after=())
    found = Plan((plan,), 3, ("sample/b",)).as_json()
    assert found["summary"] == {"create": 0, "update": 1, "adopt": 0, "delete": 0, "unchanged": 3}
    assert found["unlisted"] == ["sample/b"]
    assert found["objects"][0]["next_times"] == {"before": ["1970-01-01T00:00:01.000Z"], "after": []}


def test_a_long_diff_of_code_is_cut() -> None:
    diff = code_diff("", "\n".join(map(str, range(2 * DIFF_LINES))))
    assert len(diff) == DIFF_LINES + 1
    assert diff[-1].endswith("more lines")


@truth_table(
    "old, new",
    [
        ("", "a"),
        ("a", ""),
        ("a\nb", "a\nB"),
        ("\n".join("abcdefghijklm"), "\n".join("abXdefghijklYmZ")),
        ("\n".join("abcdefg"), "\n".join("Xabcfg")),
    ],
)
def test_a_diff_of_code_is_a_unified_one(old: str, new: str) -> None:
    expected = list(unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2))[2:]
    assert list(code_diff(old, new)) == expected


def test_a_diff_of_code_ends_once_its_steps_are_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made while the scheduling waits; a source has up to half a million characters."""
    monkeypatch.setattr("app.domain.text.line_diff.STEPS_MAX", 0)
    assert code_diff("a\nb", "a\nc") == ("@@ -1,2 +1,2 @@", "-a", "-b", "+a", "+c")
