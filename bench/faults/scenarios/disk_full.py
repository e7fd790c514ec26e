"""Scenario ``disk-full``: the disk is full for a while."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

from bench.faults.checker import Findings, check
from bench.faults.installation import CannotRun
from bench.faults.jobs import add_watched, stop_watched
from bench.faults.judging import settled_history, verdict
from tests.acceptance.cluster import APPNAME, Cluster
from tests.support.databases import migrate
from tests.support.eventually import eventually

#: megabytes of the disk: a WAL of the usual size would take all of it
SIZE_MB = 16
#: how long the disk is full
FULL_S = 15
JOBS = 12
#: long enough to write more than the disk holds
BEFORE_S, AFTER_S = 60, 15
SETTLE_S = 90
#: log lines a program may write about it meanwhile
LINES = 6
PATTERNS = ("full", "no space", "disk i/o error", "not available", "unavailable")
TRACEBACK = "Traceback (most recent call last)"
PROGRAMS = ("workers", "console")
#: bytes written at once to fill the disk, down to the last one
PIECE = 64 * 1024


def disk_full(db: str, folder: Path) -> dict[str, Any]:
    """The home, on a disk of 16 MB (needs root), is full for 15 s while twelve jobs run every second.

    Must hold: the WAL does not fill the disk by itself, everything continues once there is space, nothing is
    lost or doubled (misfires may be skipped), console and workers log no traceback, also when they are
    stopped on a full disk, and meanwhile at most 6 lines each about it.
    """
    assert db == "sqlite"
    home = folder / "home"
    with small_disk(home):
        cluster = Cluster(folder, f"sqlite:///{home / 'xxl_job.db'}")
        migrate(cluster.database_url)
        try:
            return fill_up(cluster, home)
        finally:
            cluster.programs.stop_all()


def fill_up(cluster: Cluster, home: Path) -> dict[str, Any]:
    group_id = cluster.start_all(appname=APPNAME)
    jobs = [add_watched(cluster.console, group_id) for _ in range(JOBS)]
    eventually(lambda: len(cluster.events("start")) >= JOBS, message="the jobs have started")
    time.sleep(BEFORE_S)
    marks = {name: len(text) for name, text in outputs(cluster).items()}
    starts = len(cluster.events("start"))
    with ballast(home / "ballast"):
        time.sleep(FULL_S / 2)
        with contextlib.suppress(requests.RequestException):  # the answer does not matter
            cluster.console.http.post(
                f"{cluster.console.address}/jobinfo/trigger", data={"id": jobs[0].job_id}, timeout=10
            )
        time.sleep(FULL_S / 2)
    meanwhile = {name: text[marks[name] :] for name, text in outputs(cluster).items()}
    while_full = len(cluster.events("start")) - starts
    time.sleep(AFTER_S)
    after = len(cluster.events("start")) - starts - while_full
    history, settled_s = settled_history(cluster, stop_watched(cluster.console, jobs), SETTLE_S)
    found = check(history)
    figures = {
        "settled_s": settled_s,
        "starts_while_full": while_full,
        "starts_after": after,
        "logs": judge_logs(meanwhile, found),
    }
    if after < JOBS * AFTER_S / 2:
        found.violations.append(f"only {after} starts in {AFTER_S} s after there was room again")
    stop_both(cluster, home, found)
    return figures | verdict(cluster, history, found)


def stop_both(cluster: Cluster, home: Path, found: Findings) -> None:
    """Stop console and workers on a full disk; a traceback is a violation."""
    with ballast(home / "ballast"):
        for name in PROGRAMS:
            cluster.programs[name].end()
    found.violations += [
        f"{name} stopped with a traceback" for name, text in outputs(cluster).items() if TRACEBACK in text
    ]


def outputs(cluster: Cluster) -> dict[str, str]:
    return {name: text for name, text in cluster.programs.outputs().items() if name in PROGRAMS}


def judge_logs(meanwhile: dict[str, str], found: Findings) -> dict[str, dict[str, int]]:
    """Return what console and workers logged meanwhile; tracebacks or many lines are violations."""
    figures = {}
    for name, text in meanwhile.items():
        lines = text.splitlines()
        matching = sum(
            any(pattern in line.lower() for pattern in PATTERNS) for line in lines if line[:1].isdigit()
        )
        counts = {
            "lines": len(lines),
            "saying_so": matching,
            "tracebacks": text.count(TRACEBACK),
        }
        figures[name] = counts
        if counts["tracebacks"] or matching > LINES:
            found.violations.append(f"{name} while the disk was full: {counts}")
    if not any(counts["saying_so"] for counts in figures.values()):
        found.violations.append("nothing says that the disk is full")
    return figures


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a file system in memory."""
    if os.geteuid() != 0:
        raise CannotRun("disk-full mounts a small file system and needs root")
    folder.mkdir()
    arguments = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m,mode=0700", "tmpfs", str(folder)]
    ended = subprocess.run(arguments, capture_output=True, text=True)
    if ended.returncode:
        raise CannotRun(f"disk-full cannot mount a file system here: {ended.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def ballast(path: Path) -> Iterator[None]:
    """Fill a disk to the last byte with a file that is removed in the end."""
    size = PIECE
    with path.open("wb", buffering=0) as stream:
        while size:
            try:
                stream.write(b"\0" * size)
            except OSError:
                size //= 2
        try:
            yield
        finally:
            path.unlink()
