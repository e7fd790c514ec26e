"""Files for Kubernetes and GitHub, which are not run by tests, pass the published schemas."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from app.settings.config import SETTINGS
from executor_client.wire.version import VERSION

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = [*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob("docs/examples/github-actions/*.yaml")]
MANIFESTS: list[dict[str, Any]] = [
    *yaml.safe_load_all((ROOT / "deploy/kubernetes/duetime.yaml").read_text(encoding="utf-8"))
]
#: oldest and newest release of Kubernetes whose schemas the manifests pass
VERSIONS = ("1.29", "1.34")


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_pass_the_schemas_of_kubernetes(version: str) -> None:
    for manifest in MANIFESTS:
        kubernetes_validate.validate(manifest, version, strict=True)


def test_a_manifest_with_an_unknown_field_is_refused() -> None:
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**MANIFESTS[0], "dataa": {}}, VERSIONS[-1], strict=True)


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {item["metadata"]["name"]: item for item in MANIFESTS if item["kind"] == kind}


def test_manifests_set_known_variables_and_name_their_secrets() -> None:
    variables = of_kind("ConfigMap")["duetime"]["data"]
    assert {name.removesuffix("_FILE") for name in variables} <= set(SETTINGS)
    for deployment in of_kind("Deployment").values():
        pod = deployment["spec"]["template"]["spec"]
        folders = {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        paths = {value for name, value in variables.items() if name.endswith("_FILE")}
        assert {str(Path(path).parent) for path in paths} <= folders


def test_every_deployment_has_two_pods_probes_a_budget_and_no_rights() -> None:
    budgets = {
        str(budget["spec"]["selector"]["matchLabels"]) for budget in of_kind("PodDisruptionBudget").values()
    }
    deployments = of_kind("Deployment")
    assert set(deployments) == {"duetime-console", "duetime-workers"}
    for deployment in deployments.values():
        spec = deployment["spec"]
        pod, (container,) = spec["template"]["spec"], spec["template"]["spec"]["containers"]
        assert spec["replicas"] == 2
        assert str(spec["selector"]["matchLabels"]) in budgets
        assert {"startupProbe", "livenessProbe"} <= set(container)
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert container["image"].endswith(f":{VERSION}")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_pass_the_schema_of_github(workflow: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    ended = subprocess.run([*command, workflow], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout


def test_a_workflow_with_an_unknown_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.yml").write_text("on: push\njobs: {a: {runs-on: x, step: []}}\n")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    ended = subprocess.run([*command, tmp_path / "bad.yml"], capture_output=True, check=False)
    assert ended.returncode == 1


@pytest.mark.parametrize(
    ("tag", "title", "passes"),
    [
        (f"v{VERSION}", f"## [{VERSION}] - 2026-12-01", True),
        (f"v{VERSION}", f"## [{VERSION}] - unreleased", False),
        ("v0.9.0", f"## [{VERSION}] - 2026-12-01", False),
    ],
)
def test_a_release_has_the_tag_of_its_version_and_a_dated_section(
    tmp_path: Path, tag: str, title: str, passes: bool
) -> None:
    steps = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]["build"]["steps"]
    checks = [step["run"] for step in steps if str(step.get("name", "")).startswith("The ")]
    assert len(checks) == 2
    file = tmp_path / "executor_client/wire/version.py"
    file.parent.mkdir(parents=True)
    file.write_text((ROOT / "executor_client/wire/version.py").read_text())
    (tmp_path / "CHANGELOG.md").write_text(
        f"# Changelog\n\n{title}\n\n- new\n\n## [0.0.1] - 2020-01-01\n\n- old\n"
    )
    command = ["bash", "-e", "-o", "pipefail", "-c", "\n".join(checks)]
    ended = subprocess.run(command, cwd=tmp_path, env={**os.environ, "GITHUB_REF_NAME": tag}, check=False)
    assert (ended.returncode == 0) is passes
    if passes:
        assert (tmp_path / "build/notes.md").read_text() == f"{title}\n\n- new\n\n"
