"""Sharding parameter, parsed as in the original."""

from app.domain.runs.sharding import WHOLE, Shard, parse_shard
from tests.support.truth_table import truth_table


@truth_table(
    "text, shard",
    [
        ("0/3", Shard(0, 3)),
        ("2/3", Shard(2, 3)),
        ("7/3", Shard(7, 3)),
        ("0/0", Shard(0, 0)),
        ("999999999/1", Shard(999_999_999, 1)),
        *(
            (text, None)
            for text in (
                "",
                None,
                "1",
                "1/",
                "/2",
                "1/2/3",
                "a/b",
                "-1/2",
                " 1/2",
                "1/2\n",
                "1/ 2",
                "9999999999/1",
            )
        ),
    ],
)
def test_a_pair_of_integers_is_a_shard(text: str | None, shard: Shard | None) -> None:
    assert parse_shard(text) == shard


def test_a_formatted_shard_parses_back() -> None:
    assert str(Shard(1, 3)) == "1/3"
    assert parse_shard(str(WHOLE)) == WHOLE
