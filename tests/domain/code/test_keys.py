"""Keys made from names."""

from app.domain.code.keys import free_key, variable_name
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
    assert free_key(names, taken) == key


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
