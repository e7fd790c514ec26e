"""Helpers of the tests of executor client, for all that need them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import requests

from executor_client.config.config import Timing
from tests.executor_client.stand_in_admin import TOKEN

#: 2024-05-01 03:04:05.123 UTC
T0 = 1_714_532_645_123


#: short waits for tests
FAST = Timing(
    admin_timeout_s=2,
    registry_period_s=0.2,
    callback_retry_min_s=0.02,
    callback_retry_max_s=0.2,
    cooperative_s=0.05,
    terminate_s=0.3,
    abandon_s=0.3,
    shutdown_wait_s=0.2,
    drain_s=1,
    restore_max_age_s=10**9,
)


def run_fields(log_id: int, **changes: Any) -> dict[str, Any]:
    """Return the twelve fields of a trigger, with changes."""
    fields = {
        "jobId": 1,
        "executorHandler": "ok",
        "executorParams": "",
        "executorBlockStrategy": "SERIAL_EXECUTION",
        "executorTimeout": 0,
        "logId": log_id,
        "logDateTime": T0,
        "glueType": "BEAN",
        "glueSource": "",
        "glueUpdatetime": 1_541_254_891_000,
        "broadcastIndex": 0,
        "broadcastTotal": 1,
    }
    return {**fields, **changes}


@dataclass
class Caller:
    """Client that calls an executor as an admin does."""

    base: str
    token: str = TOKEN
    session: requests.Session = field(default_factory=requests.Session)

    def post(self, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        headers = {"XXL-JOB-ACCESS-TOKEN": self.token, **options.pop("headers", {})}
        response = self.session.post(self.base + path, json=body, headers=headers, timeout=10, **options)
        assert response.status_code == 200, response.text
        return dict(response.json())

    def run(self, log_id: int, **changes: Any) -> dict[str, Any]:
        return self.post("/run", run_fields(log_id, **changes))

    def accepted(self, log_id: int, **changes: Any) -> None:
        reply = self.run(log_id, **changes)
        assert reply["code"] == 200, reply

    def log(self, log_id: int, from_line: int = 1) -> dict[str, Any]:
        return dict(
            self.post("/log", {"logId": log_id, "logDateTim": T0, "fromLineNum": from_line})["content"]
        )

    def is_busy(self, job_id: int = 1) -> bool:
        return self.post("/idleBeat", {"jobId": job_id})["code"] == 500


MakeExecutor = Callable[..., Caller]
