"""Runs with a secret in a running installation: its executors repeat it wherever they can."""

import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.console import Console
from tests.acceptance.programs import Programs
from tests.support.eventually import eventually
from tests.support.fake_executor import Answer, FakeExecutor

SAMPLE_APP, ECHO_APP = "xxl-job-executor-sample", "echo-app"
TIMEOUT_S = 60
#: program that runs commands in turn
COMMANDS = "tests.security.commands_in_turn"
JOB = "owner: ann, fill_parameter: true"
FILES = {
    "sample.yaml": f"""
group: {SAMPLE_APP}
jobs:
  said: {{description: said, handler: demoJobHandler, {JOB}, param: '{{"a": "${{secret.CANARY}}"}}'}}
  broken: {{description: broken, handler: failJobHandler, {JOB}, retry_count: 1, param: '${{secret.CANARY}}'}}
""",
    "echo.yaml": f"""
group: {ECHO_APP}
jobs:
  echoed: {{description: echoed, handler: any, {JOB}, param: '${{secret.CANARY}}'}}
""",
}


@dataclass
class SecretUse:
    """Installation in which a secret is used, and where its value was looked for so far."""

    console: Console
    programs: Programs
    environ: dict[str, str]
    folder: Path
    secret: str
    executor: FakeExecutor
    #: command, alarm or answer -> its text
    shown: dict[str, str] = field(default_factory=dict)
    #: log ids of the runs with the secret, and ids of their jobs
    log_ids: list[int] = field(default_factory=list)
    job_ids: list[int] = field(default_factory=list)

    def duetime(self, *commands: Sequence[object], given: str = "") -> None:
        """Run commands on the database, one after the other in one process; keep what they print.

        The first one reads ``given``.
        """
        lines = [[str(word) for word in command] for command in commands]
        order = json.dumps({"commands": lines, "given": given})
        program = self.programs.fork("commands", ("-m", COMMANDS, order), self.environ)
        assert program.process.wait(TIMEOUT_S) == 0, program.output
        *errors, outcomes = program.output.splitlines()
        self.shown["errors of commands"] = "\n".join(errors)
        for words, (exit_code, output) in zip(lines, json.loads(outcomes), strict=True):
            assert exit_code == 0, (words, output)
            self.shown[" ".join(words)] = output

    def local(self, *commands: Sequence[object], given: str = "") -> None:
        """Run commands that otherwise use the API."""
        self.duetime(*(("--local", *command) for command in commands), given=given)

    def prepare(self) -> None:
        """Add the group that echoes, its secret, and the jobs by files of jobs as code."""
        page = self.console.http.get(f"{self.console.address}/help", timeout=TIMEOUT_S).text
        token = page.partition('name="csrf_token"')[2].partition('value="')[2].partition('"')[0]
        hook = self.executor.address.replace("http://", "json://").rstrip("/")
        form = {"csrf_token": token, "app_name": ECHO_APP, "title": "Echo", "address_type": "1"}
        form |= {"address_list": self.executor.address, "alarm_urls": f"{hook}/alarm"}
        saved = self.console.http.post(
            f"{self.console.address}/jobgroup/new", data=form, timeout=TIMEOUT_S, allow_redirects=False
        )
        assert saved.status_code == 303, saved.text[-3_000:]
        self.folder.mkdir()
        for name, text in FILES.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        self.local(
            ("variables", "set", "CANARY", "--group", ECHO_APP, "--secret-stdin"),
            ("plan", self.folder),
            ("apply", self.folder, "--yes"),
            ("plan", self.folder, "--exit-code"),
            ("drift",),
            given=self.secret,
        )

    def run_all(self) -> None:
        """Run the jobs: a success, a failure with its retry, a refusal with an alarm, and a kill."""
        sample, echo = (self._group(name) for name in (SAMPLE_APP, ECHO_APP))
        said, broken = (self._job(sample, name) for name in ("said", "broken"))
        echoed = self._job(echo, "echoed")
        self.job_ids += [said, broken, echoed]
        log = {"fromLineNum": 1, "toLineNum": 1, "logContent": f"{json.dumps(self.secret)}\n", "isEnd": False}
        self.executor.respond("run", Answer.json(code=500, msg=f"no {self.secret}"), Answer.json())
        self.executor.respond("log", Answer.json(content=log))
        self.executor.respond("kill", Answer.json(msg=f"ended {self.secret}"))
        self.local(*(("jobs", "trigger", job_id) for job_id in self.job_ids))
        (refused,) = self.console.await_runs(echo, echoed, 1)
        assert "‹secret CANARY›" in refused["triggerMsg"], refused
        self.local(("jobs", "trigger", echoed))
        accepted = eventually(lambda: self._accepted(echo, echoed), 30, "the executor has accepted a run")
        self.shown["its log"] = self.console.log_text(accepted["id"])
        self.shown["its kill"] = json.dumps(self.console.ask("/joblog/logKill", id=accepted["id"]))
        done = [*self.console.await_runs(sample, said, 1), *self.console.await_runs(sample, broken, 2)]
        assert [run["handleCode"] for run in done] == [200, 500, 500], done
        self.log_ids += [run["id"] for run in (*done, refused, accepted)]
        eventually(self.alarms, 60, "an alarm was sent")
        self.shown["alarms"] = " ".join(self.alarms())

    def ask_all(self) -> None:
        """Show, export and back up all that there is."""
        commands: list[Sequence[object]] = []
        for log_id in self.log_ids:
            commands.append(("runs", "show", log_id, "-o", "json"))
            if log_id != self.log_ids[3]:  # An executor has no log of a run that it has refused.
                commands.append(("runs", "tail", log_id))
                commands.append(("runs", "tail", log_id, "--follow", "-o", "json"))
        for job_id in self.job_ids:
            commands += [("jobs", "show", job_id, "-o", "json"), ("jobs", "export", job_id)]
        for words in ("runs list -o json", "variables list -o json", "export", "export --whole"):
            commands.append(words.split())
        self.local(*commands)
        backup = self.folder.parent / "backup.tar"
        self.duetime(("backup", backup))
        with tarfile.open(backup) as archive:
            self.shown["names of the backup"] = " ".join(archive.getnames())
            for member in archive:
                content = archive.extractfile(member)
                if content is not None:
                    text = content.read().decode("utf-8", "replace")
                    self.shown[f"backup: {member.name}"] = text

    def alarms(self) -> list[str]:
        requests = [request for request in self.executor.requests if request.target.startswith("/alarm")]
        return [request.body.decode() for request in requests]

    def _accepted(self, group_id: int, job_id: int) -> dict[str, Any] | None:
        runs = self.console.runs(group_id, job_id)
        return next((run for run in runs if run["triggerCode"] == 200), None)

    def _group(self, app_name: str) -> int:
        return next(int(row["id"]) for row in self.console.groups() if row["appname"] == app_name)

    def _job(self, group_id: int, description: str) -> int:
        form = {"jobGroup": group_id, "triggerStatus": -1, "start": 0, "length": 100}
        rows = self.console.ask("/jobinfo/pageList", **form)["data"]
        return next(int(row["id"]) for row in rows if row["jobDesc"] == description)
