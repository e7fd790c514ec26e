"""Plans and drift as text."""

from typing import Any

from executor_client.code.plan_text import drift_lines, plan_lines


def field(old: Any, new: Any, **more: Any) -> dict[str, Any]:
    return {"field": "param", "old": old, "new": new, "was_edited": False, **more}


def planned(*fields: Any) -> dict[str, Any]:
    object_ = {"kind": "job", "key": "a/b", "action": "update", "id": 1, "fields": fields, "notes": []}
    object_ |= {"owned": [], "released": [], "next_times": None, "withdrawn": []}
    return {"objects": [object_], "unlisted": [], "summary": {"update": 1}}


def test_values_do_not_command_the_terminal() -> None:
    command = "\x1b]0;title\x07"
    fields = [field(command, [command]), field("a", f"{command}\n"), field("a", "b", diff=[f"+\t{command}"])]
    drifted = {
        "kind": "job",
        "key": "a/b",
        "is_gone": False,
        "id": 1,
        "applied_at": "2030-01-31T08:00:00.000Z",
        "source": "s",
    }
    lines = [*plan_lines(planned(*fields)), *drift_lines([{**drifted, "fields": fields}])]
    assert any(line.startswith("    applied 2030-01-31 ") for line in lines)
    texts = [line for line in lines if "title" in line]
    assert len(texts) >= 5
    assert not any("\x1b]" in text or "\x07" in text for text in texts)


def test_structures_are_shown_as_json() -> None:
    promise = {"kind": "starts_within", "s": 300}
    lines = [*plan_lines(planned(field([promise], []), field(None, {"channel": "值班", "after_minutes": 5})))]
    assert any('{"kind": "starts_within", "s": 300} -> none' in line for line in lines)
    assert any('none -> {"channel": "值班", "after_minutes": 5}' in line for line in lines)
