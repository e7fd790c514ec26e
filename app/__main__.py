"""``python -m app COMMAND``: the program ``duetime``."""

import atexit
import gc
import signal
from typing import Any, NoReturn

from app.runtime.logging import set_up_logging
from app.settings.home import keep_new_files_private
from executor_client.config.program_name import program_name


def main() -> None:
    """Run the command of the command line; warnings go to standard error."""
    # Before the imports, in which nothing is garbage: looking for it takes an eighth of a command's time, and
    # a quarter at its end, when the memory is freed anyway.
    gc.set_threshold(400_000)
    atexit.register(gc.freeze)
    from app.commands.main import duetime

    keep_new_files_private()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # not under nohup
            signal.signal(number, _stop)
    set_up_logging("WARNING")
    duetime(prog_name=program_name())


def _stop(number: int, _frame: Any) -> NoReturn:
    """End as by Ctrl-C: what is half done is undone, and programs that were started are ended."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
