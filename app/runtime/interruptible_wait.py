"""Interruptible pauses of requests: a console that stops ends them, so that each is still answered."""

import threading

#: set when the console stops
stopping = threading.Event()


def pause(seconds: float) -> bool:
    """Wait; True at once when the console stops."""
    return stopping.wait(seconds)
