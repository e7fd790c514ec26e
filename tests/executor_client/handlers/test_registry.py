"""Handlers: @job, context, and the test helper ``run_handler``."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest

from executor_client import HandlerRegistry, context
from executor_client.runs.context import current_run
from executor_client.testing import run_handler
from executor_client.wire.errors import ExecutorError, HandlerConflict
from tests.support.truth_table import truth_table


def free() -> str:
    return "free"


class Jobs:
    """Handlers that share an instance."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.opened = 0

    def open(self) -> None:
        self.opened += 1

    def add(self) -> str:
        return str(self.base + int(context.param or 0) + self.opened)


def test_functions_methods_and_coroutines_become_handlers(handlers: HandlerRegistry) -> None:
    async def coroutine() -> str:
        return "awaited"

    handlers.job("a")(free)
    handlers.job("b")(coroutine)
    handlers.job("c")(Jobs(5).add)
    assert handlers.names() == ["a", "b", "c", "ok"]
    assert [run_handler(name, "2", handlers=handlers).msg for name in "abc"] == ["free", "awaited", "7"]


def test_decorated_methods_become_handlers_with_their_instance(handlers: HandlerRegistry) -> None:
    class Marked(Jobs):
        @handlers.job("marked", init="open")
        def go(self) -> str:
            return self.add()

    with pytest.raises(HandlerConflict, match="call executor_client.register"):
        handlers.require_bound()
    handlers.register(Marked(10))
    handlers.require_bound()
    assert run_handler("marked", "1", handlers=handlers).msg == "12"


def test_static_and_class_methods_become_handlers_in_either_order(handlers: HandlerRegistry) -> None:
    class Marked:
        @handlers.job("static")
        @staticmethod
        def static() -> str:
            return f"static {context.param}"

        @staticmethod
        @handlers.job("static below")
        def static_below() -> str:
            return f"static {context.param}"

        @handlers.job("class")
        @classmethod
        def of_class(cls) -> str:
            return f"{cls.__name__} {context.param}"

        @classmethod
        @handlers.job("class below")
        def of_class_below(cls) -> str:
            return f"{cls.__name__} {context.param}"

    handlers.register(Marked())
    for name in ("static", "static below", "class", "class below"):
        result = run_handler(name, "x", handlers=handlers)
        assert result.msg == f"{'Marked' if 'class' in name else 'static'} x"


def test_the_decorator_returns_the_function(handlers: HandlerRegistry) -> None:
    assert handlers.job("a")(free) is free


async def open_async() -> None:
    """An invalid hook: its coroutine would not run."""


def needs_bytes(day: bytes) -> None:
    """An invalid handler: no text can fill its argument."""


@pytest.mark.parametrize(
    ("name", "function", "options", "expected"),
    [
        ("", free, {}, "must not be blank"),
        ("ok", free, {}, "naming conflicts"),
        ("x", needs_bytes, {}, "argument day: bytes is not supported"),
        ("x", lambda: None, {"process": True}, "requires a module-level function"),
        ("x", free, {"init": "open"}, "for methods only"),
        ("x", free, {"init": open_async}, "'open_async': hooks must be plain functions"),
        ("x", free, {"destroy": open_async}, "'open_async': hooks must be plain functions"),
    ],
)
def test_invalid_handlers_are_refused(
    handlers: HandlerRegistry, name: str, function: Any, options: dict[str, Any], expected: str
) -> None:
    with pytest.raises(HandlerConflict, match=expected):
        handlers.job(name, **options)(function)


def test_a_reloaded_function_replaces_the_earlier_one(handlers: HandlerRegistry) -> None:
    handlers.job("a")(free)
    before = handlers.find("a")
    handlers.job("a")(free)
    assert handlers.find("a") is not before


def test_a_process_handler_cannot_be_a_method(handlers: HandlerRegistry) -> None:
    class Marked:
        @handlers.job("marked", process=True)
        def go(self) -> None:
            """Never run."""

    with pytest.raises(HandlerConflict, match="not a method"):
        handlers.register(Marked())


def test_any_callable_can_be_a_handler(handlers: HandlerRegistry) -> None:
    handlers.job("partial")(partial(str.upper, "x"))
    assert run_handler("partial", handlers=handlers).msg == "X"


def test_the_context_outside_a_run() -> None:
    assert (context.job_id, context.log_id, context.shard_index, context.shard_total, context.param) == (
        -1,
        -1,
        -1,
        -1,
        None,
    )
    assert not context.log("goes to the process log")
    assert not context.success()
    assert not context.fail("x")
    assert current_run() is None
    with pytest.raises(AttributeError):
        context.param = "x"


def test_log_formats_like_logging_and_names_the_caller() -> None:
    def handler() -> None:
        context.log("%s of %d", "one", 2)
        context.log("100%")
        context.log("wrong %d", "x")
        context.log({"a": 1})
        try:
            raise ValueError("raised")
        except ValueError:
            context.log_exception()

    lines = run_handler(handler).log.splitlines()
    assert [line.partition("] ")[2] for line in lines[:4]] == [
        "one of 2",
        "100%",
        "wrong %d ('x',)",
        "{'a': 1}",
    ]
    assert "[test_registry#handler]-[" in lines[0]
    assert lines[-1] == "ValueError: raised"


def test_run_handler_passes_parameter_and_shard() -> None:
    result = run_handler(
        lambda: f"{context.param} {context.shard_index}/{context.shard_total}", "p", shard=(1, 3)
    )
    assert (result.code, result.msg, result.error) == (200, "p 1/3", None)


def test_run_handler_shows_failures() -> None:
    result = run_handler(lambda: 1 // 0)
    assert result.code == 500
    assert isinstance(result.error, ZeroDivisionError)
    assert run_handler(lambda: context.fail("no")).msg == "no"


class SilentError(Exception):
    """Exception whose ``__str__`` fails."""

    def __str__(self) -> str:
        raise self.args[0]


@truth_table("failure", [KeyError("day"), SystemExit(1), KeyboardInterrupt()])
def test_an_error_without_text_is_named(failure: BaseException) -> None:
    def handler() -> None:
        raise SilentError(failure)

    line = handler.__code__.co_firstlineno + 1
    result = run_handler(handler)
    assert (result.code, result.msg) == (500, f"SilentError (test_registry.py:{line})")
    assert isinstance(result.error, SilentError)


def rows() -> Iterator[int]:
    yield 1


async def async_rows() -> AsyncIterator[int]:
    yield 1


async def awaited_rows() -> Iterator[int]:
    return rows()


@truth_table("handler, name", [(rows, "rows"), (async_rows, "async_rows"), (awaited_rows, "rows")])
def test_a_generator_that_ran_nothing_is_no_success(handler: Callable[[], Any], name: str) -> None:
    result = run_handler(handler)
    assert result.code == 500
    assert result.msg == f"the handler returned the generator {name}, whose code did not run"


async def load() -> int:
    return 1


async def forgets_to_await() -> Any:
    return load()


async def returns_what_it_awaited() -> Any:
    coroutine = load()
    await coroutine
    return coroutine


def test_a_coroutine_that_was_not_awaited_is_no_success() -> None:
    result = run_handler(forgets_to_await)
    assert result.code == 500
    assert result.msg == "the handler returned the coroutine load, whose code did not run"
    assert run_handler(returns_what_it_awaited).code == 200


def test_run_handler_can_start_cancelled() -> None:
    assert run_handler(lambda: str(context.cancelled.is_set()), cancelled=True).msg == "True"


def test_run_handler_lists_the_known_handlers(handlers: HandlerRegistry) -> None:
    with pytest.raises(ExecutorError, match="known: ok"):
        run_handler("nope", handlers=handlers)


def test_there_is_no_idempotency_key_outside_a_run() -> None:
    with pytest.raises(RuntimeError, match="there is no run here, or it has ended"):
        _ = context.idempotency_key


def test_the_idempotency_key_names_the_run() -> None:
    result = run_handler(lambda: context.idempotency_key)
    assert result.msg.startswith("job-1-log-1-")  # type: ignore[union-attr]


@truth_table(
    "name, param, code, expected",
    [
        ("sleepJobHandler", "0.01", 200, "slept 0.01 s"),
        ("sleepJobHandler", "soon", 500, "must be a number of seconds"),
        ("sleepJobHandler", "", 500, "must be a number of seconds"),
        ("sleepJobHandler", "nan", 500, "must be a number of seconds"),
        ("sleepJobHandler", "-1", 500, "must be a number of seconds"),
        ("failJobHandler", "x", 500, "RuntimeError: failJobHandler always fails"),
        ("shardingJobHandler", "", 200, "shard 1 of 3"),
    ],
)
def test_the_demo_handlers(name: str, param: str, code: int, expected: str) -> None:
    import executor_client.demo  # noqa: F401 - registers them

    result = run_handler(name, param, shard=(1, 3))
    assert result.code == code
    assert expected in (result.msg or "")


def test_the_demo_writes_ten_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    import executor_client.demo

    monkeypatch.setattr(executor_client.demo, "DEMO_PAUSE_S", 0.001)
    result = run_handler("demoJobHandler", "x")
    assert sum("line " in line for line in result.log.splitlines()) == 10
    assert run_handler("demoJobHandler", cancelled=True).code == 500
