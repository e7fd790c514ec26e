"""Client of the console as a script sees it: the original's JSON endpoints, over HTTP with a cookie."""

from typing import Any

import requests

from tests.support.eventually import eventually

ADMIN_PASSWORD = "acceptance-password"
TIMEOUT_S = 20
#: defaults of every job of these tests
JOB = {
    "jobDesc": "acceptance",
    "author": "tester",
    "scheduleType": "NONE",
    "misfireStrategy": "DO_NOTHING",
    "executorRouteStrategy": "FIRST",
    "executorHandler": "ok",
    "executorBlockStrategy": "SERIAL_EXECUTION",
    "executorTimeout": 0,
    "executorFailRetryCount": 0,
    "glueType": "BEAN",
}


class Console:
    """A logged-in script."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.http = requests.Session()
        self.http.trust_env = False

    def answers(self) -> bool:
        """Whether a console answers there."""
        try:
            return self.http.get(f"{self.address}/health", timeout=2).status_code == 200
        except requests.RequestException:
            return False

    def ask(self, path: str, **form: Any) -> Any:
        """Post a form and return the JSON answer, whatever its code."""
        response = self.http.post(
            f"{self.address}{path}", data=form, timeout=TIMEOUT_S, allow_redirects=False
        )
        assert response.status_code == 200, (
            f"{path}: {response.status_code} {response.headers.get('Location')} {response.text[:500]}"
        )
        assert response.headers["Content-Type"].startswith("application/json"), path
        return response.json()

    def post(self, path: str, **form: Any) -> Any:
        """Post a form; return the content of an answer that must have code 200."""
        answer = self.ask(path, **form)
        assert answer["code"] == 200, f"{path} {form}: {answer}"
        return answer["content"]

    def login(self, password: str = ADMIN_PASSWORD, user: str = "admin") -> None:
        self.post("/login", userName=user, password=password)

    def add_group(self, appname: str, **changes: Any) -> int:
        """Add a group and return its id."""
        self.post(
            "/jobgroup/save",
            **{"appname": appname, "title": appname[:12], "addressType": 0, "addressList": ""} | changes,
        )
        return next(int(row["id"]) for row in self.groups(appname) if row["appname"] == appname)

    def groups(self, appname: str = "") -> list[dict[str, Any]]:
        return list(self.ask("/jobgroup/pageList", appname=appname, title="", start=0, length=1000)["data"])

    def await_addresses(self, group_id: int, count: int = 1) -> list[str]:
        """Wait until a group has this number of executors."""

        def known() -> list[str] | None:
            row = next(row for row in self.groups() if row["id"] == group_id)
            addresses = row["registryList"] or []
            return addresses if len(addresses) >= count else None

        return eventually(known, 90, f"{count} executors of group {group_id}") or []

    def add_job(self, group_id: int, **changes: Any) -> int:
        """Add a job and return its id."""
        return int(self.post("/jobinfo/add", **JOB | {"jobGroup": group_id} | changes))

    def job(self, group_id: int, job_id: int) -> dict[str, Any]:
        rows = self.ask("/jobinfo/pageList", jobGroup=group_id, triggerStatus=-1, start=0, length=10_000)[
            "data"
        ]
        return next(row for row in rows if row["id"] == job_id)

    def start(self, job_id: int) -> None:
        self.post("/jobinfo/start", id=job_id)

    def stop(self, job_id: int) -> None:
        self.post("/jobinfo/stop", id=job_id)

    def trigger(self, job_id: int, param: str = "", addresses: str = "") -> None:
        self.post("/jobinfo/trigger", id=job_id, executorParam=param, addressList=addresses)

    def runs(self, group_id: int, job_id: int = 0) -> list[dict[str, Any]]:
        """Return the runs of a job, newest first."""
        form = {
            "jobGroup": group_id,
            "jobId": job_id,
            "logStatus": -1,
            "filterTime": "",
            "start": 0,
            "length": 1000,
        }
        return list(self.ask("/joblog/pageList", **form)["data"])

    def run(self, group_id: int, log_id: int) -> dict[str, Any]:
        return next(row for row in self.runs(group_id) if row["id"] == log_id)

    def await_runs(
        self, group_id: int, job_id: int, count: int, timeout_s: float = 30
    ) -> list[dict[str, Any]]:
        """Wait until a job has this number of runs with a final result; return them, newest first."""

        def ended() -> list[dict[str, Any]] | None:
            rows = [row for row in self.runs(group_id, job_id) if is_final(row)]
            return rows if len(rows) >= count else None

        message = f"{count} finished runs of job {job_id}"
        return eventually(ended, timeout_s, message) or []

    def log_text(self, log_id: int) -> str:
        """Return the whole log of a run, read in pieces as the log page does."""
        text, line = "", 1
        for _ in range(100):
            piece = self.post("/joblog/logDetailCat", logId=log_id, fromLineNum=line)
            text += str(piece["logContent"])
            if piece["end"] or piece["toLineNum"] < line:
                return text
            line = piece["toLineNum"] + 1
        raise AssertionError(f"the log of {log_id} has no end: {text[-500:]}")


def is_final(row: dict[str, Any]) -> bool:
    """Whether a run has ended, with any result."""
    return bool(row["handleCode"] != 0 or row["triggerCode"] not in (0, 200))
