"""Why a run waits: the text in `xxl_job_fire.waits_for`, such as ``12 full 2/2 811,812``."""

import re
from enum import StrEnum
from typing import NamedTuple

#: characters of the column
WAITS_MAX = 80
_TEXT = re.compile(r"([0-9]{1,10}) ([a-z]+) ([0-9]{1,10})/([0-9]{1,10})(?: ([0-9,]+))?")


class WaitReason(StrEnum):
    """Why a run waits for a limit."""

    #: all slots are taken, or too few are free
    FULL = "full"
    #: a run that waits already comes first
    BEHIND = "behind"
    #: the runs in progress are being killed
    REPLACING = "replacing"


class Wait(NamedTuple):
    """What a run waits for, as it was when it began to wait."""

    limit_id: int
    reason: WaitReason
    used: int
    slots: int
    #: some of the runs that had the slots, ascending
    log_ids: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The text that is stored; as many runs as it has room for."""
        text = f"{self.limit_id} {self.reason} {self.used}/{self.slots}"
        for number, log_id in enumerate(self.log_ids):
            longer = f"{text}{',' if number else ' '}{log_id}"
            if len(longer) > WAITS_MAX:
                break
            text = longer
        return text


def parse_wait(text: str) -> Wait | None:
    """Return what a run waits for; None if it does not wait, or another program has stored the text."""
    match = _TEXT.fullmatch(text)
    if match is None or match[2] not in list(WaitReason):
        return None
    log_ids = tuple(int(part) for part in (match[5] or "").split(",") if part)
    return Wait(int(match[1]), WaitReason(match[2]), int(match[3]), int(match[4]), log_ids)
