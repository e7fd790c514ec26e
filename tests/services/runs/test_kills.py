"""A success reported during a kill waits for the outcome of the kill; other results do not."""

import threading

from app.services.runs.kills import KillsUnderWay
from tests.support.eventually import eventually


def test_a_success_during_a_kill_waits_for_the_outcome() -> None:
    kills, order = KillsUnderWay(), []

    def store() -> None:
        kills.wait([1, 7])
        order.append("result")

    with kills.hold(7), kills.hold(7):
        thread = threading.Thread(target=store)
        thread.start()
        kills.wait([8])
        order.append("other result")
        assert thread.is_alive()
        order.append("killed")
    thread.join(10)
    assert order == ["other result", "killed", "result"]


def test_a_kill_that_never_ends_does_not_hold_results_for_ever() -> None:
    kills = KillsUnderWay()
    waited = threading.Event()
    with kills.hold(7):
        threading.Thread(target=lambda: (kills.wait([7], 0.01), waited.set())).start()
        eventually(waited.is_set)
    free = threading.Thread(target=kills.wait, args=([7], 60), daemon=True)
    free.start()
    free.join(10)
    assert not free.is_alive()
