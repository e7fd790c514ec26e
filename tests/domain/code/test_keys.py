"""Keys made from names."""

from app.domain.code.keys import UsedKeys, variable_name
from tests.support.truth_table import truth_table


@truth_table(
    "names, taken, key",
    [
        (["Close the books (EU)"], [], "close-the-books-eu"),
        (["Close"], ["close"], "close-2"),
        (["Close"], ["close", "close-2"], "close-3"),
        (["…", "demoJobHandler"], [], "demojobhandler"),
        (["…", ""], [], "job"),
        (["每日 结算"], [], "每日-结算"),
        (["a" * 300], [], "a" * 60),
    ],
)
def test_keys_are_made_from_the_first_name_with_letters(names: list[str], taken: list[str], key: str) -> None:
    keys = UsedKeys()
    for used in taken:
        keys.add(used)
    assert keys.make(names) == key


def test_thousands_of_jobs_of_one_name_get_keys_at_once() -> None:
    keys = UsedKeys()
    keys.add("close-3")
    made = [keys.make(["Close"]) for _ in range(50_000)]
    assert (made[:3], made[-1], len(set(made))) == (["close", "close-2", "close-4"], "close-50001", 50_000)


@truth_table(
    "words, name",
    [
        (("Ops (Slack)", "url"), "OPS_SLACK_URL"),
        (("值班", ""), "SECRET"),
        (("2nd line", "url"), "_2ND_LINE_URL"),
    ],
)
def test_variables_have_upper_case_names(words: tuple[str, ...], name: str) -> None:
    assert variable_name(*words) == name
