"""An admin is unavailable while runs end: every result arrives once, unchanged, soon after it is back.

The outage takes 5 s; ``XXL_TEST_OUTAGE_S=60`` for a longer one.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.executor_client.process import ExecutorProcess
from tests.executor_client.stand_in_admin import StandInAdmin
from tests.support.eventually import eventually

OUTAGE_S = float(os.environ.get("XXL_TEST_OUTAGE_S") or "5")
#: runs sent per second of the outage; every third one fails
RATE = 20
FAILS_EVERY = 3
JOBS = 10
BATCH_MAX = 50
#: The executor retries its registration every 3 s and reports results once one succeeds. Shorter than the
#: longest pause between two attempts, so that waiting it out is too late after a long outage.
BACK_S = 15
#: attempts to report back off: after 1, 2, 4, 8, 16, 30 s
ATTEMPTS_MAX = 12

Away = Callable[[StandInAdmin, threading.Event], None]


def refuses_connections(admin: StandInAdmin, back: threading.Event) -> None:
    admin.down()


def never_answers(admin: StandInAdmin, back: threading.Event) -> None:
    def hang(action: str, body: Any) -> dict[str, Any] | None:
        back.wait(OUTAGE_S + BACK_S)
        return None

    admin.refuse = hang


@pytest.fixture
def admin() -> Iterator[StandInAdmin]:
    made = StandInAdmin()
    yield made
    made.down()


@pytest.fixture
def executor(tmp_path: Path, admin: StandInAdmin) -> Iterator[ExecutorProcess]:
    made = ExecutorProcess(tmp_path, admin.url)
    made.start()
    made.wait_until_up()
    yield made
    made.kill()


def send(executor: ExecutorProcess, ids: range) -> None:
    """Send runs at the rate, each accepted at once, whatever the state of the admin."""
    pause = threading.Event()
    caller = executor.caller
    with closing(caller.session):
        for log_id in ids:
            if log_id % FAILS_EVERY:
                caller.accepted(log_id, executorHandler="record", jobId=log_id % JOBS)
            else:
                caller.accepted(
                    log_id,
                    executorHandler="recordFailure",
                    executorParams=f"no {log_id}",
                    jobId=JOBS + log_id % JOBS,
                )
            pause.wait(1 / RATE)


@pytest.mark.timeout(OUTAGE_S * 2 + 90)
@pytest.mark.parametrize(
    "leave", [refuses_connections, pytest.param(never_answers, marks=pytest.mark.extensive)]
)
def test_every_result_of_an_outage_arrives(
    executor: ExecutorProcess, admin: StandInAdmin, leave: Away
) -> None:
    executor.caller.accepted(1, executorHandler="record")
    eventually(lambda: admin.codes() == {1: 200}, message="a result while the admin is there")
    back = threading.Event()
    leave(admin, back)
    during = range(2, 2 + int(OUTAGE_S * RATE))
    send(executor, during)
    eventually(
        lambda: executor.ends().total() == len(during) + 1, message="not every run has ended by itself"
    )
    assert admin.codes() == {1: 200}, "the admin was not unavailable"
    attempts = executor.output.read_text().count("results not delivered")
    assert 1 <= attempts <= ATTEMPTS_MAX

    callbacks_before = len(admin.bodies("callback"))
    admin.refuse = lambda action, body: {}
    back.set()
    if leave is refuses_connections:
        admin.up()
    eventually(
        lambda: len(admin.codes()) == len(during) + 1, BACK_S, f"results are missing after {OUTAGE_S} s"
    )
    assert set(admin.repeats().values()) == {1}
    for log_id in during:
        expected = (200, None) if log_id % FAILS_EVERY else (500, f"no {log_id}")
        assert (admin.codes()[log_id], admin.message(log_id)) == expected
    batches = [len(body) for body in admin.bodies("callback")[callbacks_before:]]
    assert max(batches) == min(len(during), BATCH_MAX)
    assert max(executor.starts().values()) == 1
