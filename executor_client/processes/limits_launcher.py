"""Launcher of scripts: sets limits for itself, then becomes the program.

``limits_launcher.py RLIMIT_CPU=60:65 RLIMIT_FSIZE=9000:9000 -- /usr/bin/php x.php``: soft and hard limit.
Started as a file, without this package: a function that runs between fork and exec could deadlock in a
process with threads.
"""

import os
import resource
import signal
import sys


def set_limit(name: str, soft: int, hard: int) -> None:
    """Set a limit, or the current hard limit if that is lower. Raises OSError or ValueError."""
    kind = getattr(resource, name)
    _, hard_now = resource.getrlimit(kind)
    if hard_now != resource.RLIM_INFINITY:
        soft, hard = min(soft, hard_now), min(hard, hard_now)
    resource.setrlimit(kind, (soft, hard))


def main(arguments: list[str]) -> None:
    """Set the limits and execute the program; does not return."""
    end = arguments.index("--")
    for text in arguments[:end]:
        name, _, values = text.partition("=")
        soft, _, hard = values.partition(":")
        try:
            set_limit(name, int(soft), int(hard))
        except (AttributeError, OSError, ValueError) as exc:
            sys.stdout.write(f"limit {name} is not available on this system: {exc}\n")
    sys.stdout.flush()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # ignored by Python, and ignored signals are inherited
        signal.signal(number, signal.SIG_DFL)
    program = arguments[end + 1 :]
    try:
        os.execv(program[0], program)
    except OSError as exc:
        sys.exit(f"cannot start {program[0]}: {exc.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
