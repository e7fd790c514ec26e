"""Helpers of the tests of runs, for all that need them."""

from tests.support.fake_executor import Answer


def log_answer(first: int, *lines: str, **more: object) -> Answer:
    last = first + len(lines) - 1
    content = {"fromLineNum": first, "toLineNum": last, "logContent": "\n".join(lines), "isEnd": False}
    return Answer.json(content=content | more)
