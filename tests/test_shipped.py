"""Dockerfile, compose files and their secrets: what can be checked without a container runtime.

tests/acceptance/test_image.py builds and starts the image.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from app.settings.config import CLIENT_VARIABLES, SETTINGS, Config
from tests.support.databases import ROOT

COMPOSE = {
    "compose.yaml": "",
    "deploy/compose-mariadb.yaml": "mysql+pymysql",
    "deploy/compose-postgresql.yaml": "postgresql+psycopg",
}
#: seconds the workers may take to end (``processes/supervisor.py``), with the longest XXL_JOB_TRIGGER_TIMEOUT
WORKERS_END_S = 8 + 10 + 3
#: stages that no image is made of
BUILDERS = ("wheels", "install", "install-executor")
#: what no one may find in an image
PRIVATE = ("instance", ".git", ".env", ".venv", "deploy", "tests", "secrets")


def instructions() -> list[tuple[str, str, str]]:
    """Return stage, instruction and argument of each line of the Dockerfile."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    found, stage = [], ""
    for line in text.replace("\\\n", " ").splitlines():
        name, _, argument = line.strip().partition(" ")
        if name == "FROM":
            stage = argument.partition(" AS ")[2]
        if name:
            found.append((stage, name, argument.strip()))
    return found


def last(stage: str, name: str, at: int = -1) -> str:
    return [argument for of, what, argument in instructions() if (of, what) == (stage, name)][at]


def compose(path: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / path).read_text())
    return content


def own_services(path: str) -> dict[str, dict[str, Any]]:
    return {name: service for name, service in compose(path)["services"].items() if "build" in service}


@pytest.mark.parametrize("stage", ["server", "executor"])
def test_an_image_runs_without_root_and_without_a_shell(stage: str) -> None:
    user, _, group = last(stage, "USER").partition(":")
    assert int(user) > 0
    assert int(group) > 0
    for name in ("ENTRYPOINT", "CMD", "HEALTHCHECK"):
        words = json.loads(last(stage, name)[last(stage, name).index("[") :])
        assert words[0] not in ("sh", "/bin/sh")


def test_the_server_is_what_a_build_without_a_target_makes() -> None:
    assert instructions()[-1][0] == "server"


def test_packages_are_installed_as_wheels_with_hashes() -> None:
    runs = [argument for _, name, argument in instructions() if name == "RUN"]
    installs = [
        command for run in runs for command in run.split("&&") if re.search("pip (install|wheel)", command)
    ]
    for command in installs:
        assert "--require-hashes" in command or {"--no-index", "--no-deps"} <= {*command.split()}, command
    assert "PIP_ONLY_BINARY=:all:" in last("tools", "ENV")
    assert not [run for run in runs if re.search(r"\b(gcc|build-essential|python3-dev)\b", run)]


def pinned(path: str) -> set[str]:
    """Return the packages that a file of requirements pins."""
    return set(re.findall(r"^([a-z][\w-]*)==", (ROOT / path).read_text(), re.MULTILINE))


def needs_of(names: Iterable[str]) -> set[str]:
    """Return packages with all that they need, as they are installed here."""
    found, left = set[str](), {canonicalize_name(name) for name in names}
    while left:
        found.add(name := left.pop())
        needs = [Requirement(line) for line in distribution(name).requires or ()]
        named = [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
        left |= {canonicalize_name(each) for each in named} - found
    return found


def test_the_server_has_all_that_a_bucket_needs_and_no_more() -> None:
    extra = re.findall(r'extras_require=\{"s3": \["(\S+)"\]\}', (ROOT / "setup.py").read_text())
    (added,) = re.findall(r'awk .*"\^\((\S+)\)==".* requirements-dev.txt >s3.txt', last("install", "RUN", 0))
    assert {*added.split("|")} == needs_of(extra) - pinned("requirements.txt")
    assert {*added.split("|")} <= pinned("requirements-dev.txt")


def test_the_build_sees_only_named_files() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] not in ("", "#")]
    assert rules[0] == "*"
    kept = {rule[1:] for rule in rules if rule.startswith("!")}
    assert not kept & {*PRIVATE}
    assert [pattern for pattern in kept if not [*ROOT.glob(pattern)]] == []


def test_the_images_are_made_of_the_wheels_alone() -> None:
    copies = [
        argument for stage, name, argument in instructions() if name == "COPY" and stage not in BUILDERS
    ]
    assert {copy.split()[-1] for copy in copies} == {"/opt/duetime"}


@pytest.mark.parametrize("path", COMPOSE)
def test_services_are_confined(path: str) -> None:
    for name, service in own_services(path).items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "/tmp" in service["tmpfs"], name
        assert int(service["stop_grace_period"].removesuffix("s")) > WORKERS_END_S, name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name


@pytest.mark.parametrize("path", COMPOSE)
def test_settings_are_known_and_secrets_are_files(path: str) -> None:
    known = {*SETTINGS, *CLIENT_VARIABLES}
    for name, service in compose(path)["services"].items():
        for variable, value in service["environment"].items():
            is_secret = re.search("PASSWORD$|TOKEN$|KEY$|URL$", variable) and "RANDOM" not in variable
            assert not is_secret, f"{name}: {variable}"
            if variable.startswith("XXL_JOB_"):
                assert variable.removesuffix("_FILE") in known, f"{name}: {variable}"
            if variable.endswith("_FILE"):
                assert value.removeprefix("/run/secrets/") in service["secrets"], f"{name}: {variable}"


@pytest.mark.parametrize("path", COMPOSE)
def test_what_services_refer_to_exists(path: str) -> None:
    content = compose(path)
    stages = {stage for stage, _, _ in instructions()}
    for name, service in content["services"].items():
        build = service.get("build", ".")
        assert isinstance(build, str) or build["target"] in stages, name
        assert {*service.get("secrets", ())} <= content["secrets"].keys(), name
        assert {*service.get("depends_on", ())} <= content["services"].keys(), name
        volumes = {volume.partition(":")[0] for volume in service.get("volumes", ())}
        assert volumes <= content["volumes"].keys(), name


@pytest.mark.parametrize(("path", "scheme"), COMPOSE.items())
def test_the_script_makes_the_secrets_once(tmp_path: Path, path: str, scheme: str) -> None:
    script = shutil.copy(ROOT / "deploy" / "make-secrets.sh", tmp_path)
    command = ["sh", script, *([scheme] if scheme else [])]
    subprocess.run(command, check=True, capture_output=True)
    folder = tmp_path / "secrets"
    made = {file.name: file.read_text().strip() for file in folder.iterdir()}
    for name, secret in compose(path)["secrets"].items():
        assert Path(secret["file"]) == Path("deploy/secrets" if path == "compose.yaml" else "secrets") / name
        assert made[name]
    assert folder.stat().st_mode & 0o777 == 0o700
    Config.from_env(
        {f"XXL_JOB_{name.upper()}": text for name, text in made.items() if "password" not in name}
    )
    subprocess.run(command, check=True, capture_output=True)
    assert made.items() <= {file.name: file.read_text().strip() for file in folder.iterdir()}.items()


def test_the_script_refuses_the_address_of_another_database(tmp_path: Path) -> None:
    script = shutil.copy(ROOT / "deploy" / "make-secrets.sh", tmp_path)
    subprocess.run(["sh", script, "mysql+pymysql"], check=True, capture_output=True)
    ended = subprocess.run(["sh", script, "postgresql+psycopg"], capture_output=True, text=True, check=False)
    lines = [f"{tmp_path}/secrets/database_url is for another database: move it away first"]
    assert (ended.returncode, ended.stderr.splitlines()) == (1, lines)
