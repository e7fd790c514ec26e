"""Keys and ids of triggers."""

from app.domain.runs.request_ids import request_of
from app.domain.runs.trigger_keys import Trigger, key_of, new_trigger, parse_id, trigger_of
from tests.support.truth_table import truth_table

TOKEN = "9f86d081884c7d659a2feaa0c55ad015"
TRIGGER = Trigger(7, 1_795_420_800_000, TOKEN)


@truth_table("planned, kind", [(False, "manual"), (True, "once")])
@truth_table("request_id", ["", "0f2c4b6a"])
@truth_table("shard", ["", ":12"])
def test_a_key_leads_back_to_its_trigger(planned: bool, kind: str, request_id: str, shard: str) -> None:
    key = key_of(TRIGGER, is_planned=planned, request=request_id)
    assert key.startswith(f"{kind}:1795420800000-{TOKEN}")
    assert trigger_of(7, key + shard) == TRIGGER
    assert request_of(key + shard) == request_id


@truth_table(
    "key", ["cron:7:1795420800000", "retry:5:1", "child:5:1:2", "manual:1-a", f"manual:1-{TOKEN}:x", "once"]
)
def test_other_fires_have_no_trigger(key: str) -> None:
    assert trigger_of(7, key) is None


def test_an_id_names_a_trigger_and_its_number_fits_the_column() -> None:
    made = new_trigger(7, 5)
    assert parse_id(made.id) == made
    assert parse_id(TRIGGER.id) == TRIGGER
    assert TRIGGER.id == f"7.1795420800000.{TOKEN}"
    assert 0 <= new_trigger(7, 5).number != made.number < 2**63
    assert Trigger(1, 1, "f" * 32).number < 2**63


@truth_table(
    "form", ["", "7", "7.1", "7.1.{}0", "x.1.{}", "7.1.{}\n", "7.1-{}", "٧.1.{}", "12345678901.1.{}"]
)
def test_another_text_is_no_id(form: str) -> None:
    assert parse_id(form.format(TOKEN)) is None
    assert parse_id(TRIGGER.id.upper()) is None
