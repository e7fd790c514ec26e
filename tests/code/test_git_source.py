"""Source of an apply: repository and commit of the folder."""

import subprocess
from pathlib import Path

from executor_client.code.git_source import source_of


def git(folder: Path, *arguments: str) -> str:
    author = ["-c", "user.name=ann", "-c", "user.email=ann@example.com"]
    done = subprocess.run(
        ["git", "-C", str(folder), *author, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_a_source_names_repository_commit_and_what_is_not_committed(tmp_path: Path) -> None:
    root = tmp_path / "infra"
    jobs = root / "jobs"
    jobs.mkdir(parents=True)
    assert source_of(jobs) == "jobs"
    git(root, "init", "-q")
    assert source_of(jobs) == "jobs"
    (jobs / "a.yaml").write_text("jobs: {}\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "jobs")
    commit = git(root, "rev-parse", "--short=12", "HEAD")
    assert source_of(jobs) == f"infra@{commit}"
    (root / "readme").write_text("elsewhere")
    assert source_of(jobs) == f"infra@{commit}"
    (jobs / "a.yaml").write_text("jobs:\n")
    assert source_of(jobs) == f"infra@{commit} dirty"
