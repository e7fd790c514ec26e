"""A short run of the fault harness: a bad network, programs killed and suspended at random."""

import json
import os
import subprocess
import sys

import pytest

from tests.acceptance.programs import ROOT

#: seconds of faults; XXL_TEST_FAULTS_S for another number
SECONDS = 20
TIMEOUT_S = 300


@pytest.mark.timeout(TIMEOUT_S + 30)
def test_nothing_is_lost_doubled_early_or_repeated_under_faults() -> None:
    seconds = os.environ.get("XXL_TEST_FAULTS_S") or str(SECONDS)
    command = [sys.executable, "bench/faults", "--seconds", seconds, "--network", "0.05", "--no-stock"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert ended.stdout.count("\n") == 1, ended.stderr[-3000:]
    result = json.loads(ended.stdout)
    print(ended.stdout)  # noqa: T201 - the seed
    assert (ended.returncode, result["problems"]) == (0, {}), ended.stdout
    assert result["counts"]["expected"] > 10 * int(seconds)
    assert sum(result["faults"].values()) > int(seconds) / 3
