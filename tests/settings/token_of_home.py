"""Target of a process: reads the access token of a home folder. It imports nothing else, as it is spawned."""

from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path

from app.settings.config import Config
from app.settings.home import access_tokens


def read_token(home: str, answers: "Queue[str]", start: Event) -> None:
    """Put the token into ``answers`` once ``start`` is set."""
    start.wait(30)
    answers.put(access_tokens(Config(home=Path(home)))[0])
