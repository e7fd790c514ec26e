"""Remedies: each refusal of a run leads to the page that repairs it."""

from app.domain.runs.reason import NOT_SENT, Messages, find_reason
from app.domain.runs.remedies import Remedy, find_remedy

DRAINED = f"{NOT_SENT}no executor of pay takes new runs: "
OUTSIDE = "it is outside the networks of XXL_JOB_EXECUTOR_NETWORKS"
UNANSWERED = "Result: refused, no answer after 1 ms, code 500: "
REFUSED = "Result: refused, answered after 3 ms, code 500: "
SEEN = "the last one was seen 2026-11-20 08:00:00.250 +0800"
UNFILLED = f"{NOT_SENT}parameter not filled: "
RULES: list[tuple[str, str, Remedy | None]] = [
    ("offline", f"{NOT_SENT}no executor of pay is registered", Remedy.CONNECT),
    ("offline since", f"{NOT_SENT}no executor of pay is registered; {SEEN}", Remedy.CONNECT),
    ("closed port", f"{UNANSWERED}connection refused: nothing listens on this port", Remedy.CONNECT),
    ("one drained", f"{DRAINED}its only address is drained", Remedy.UNDRAIN),
    ("all drained", f"{DRAINED}all 3 addresses are drained", Remedy.UNDRAIN),
    ("outside", f"{UNANSWERED}address 'http://8.8.8.8/' refused: {OUTSIDE}", Remedy.NETWORK),
    ("GLUE", f"{REFUSED}glueType[GLUE_SHELL] is not valid.", Remedy.GLUE),
    ("token", f"{REFUSED}The access token is wrong.", Remedy.TOKEN),
    ("handler", f"{REFUSED}job handler [closeOrders] not found.", Remedy.JOB),
    ("silent", "Result: unknown, no answer after 3000 ms, code 500: no answer in time", Remedy.EXECUTOR),
    ("no group", f"{NOT_SENT}the executor group of this job no longer exists", Remedy.JOB),
    ("no parent", f"{UNFILLED}${{parent.result}}: the run has no parent", Remedy.JOB),
    ("too long", f"{UNFILLED}longer than 60,000 bytes", Remedy.JOB),
    ("no variable", f"{UNFILLED}${{var.X}}: variable X does not exist", Remedy.VARIABLES),
    ("no secret", f"{UNFILLED}${{secret.X}}: secret X does not exist", Remedy.VARIABLES),
    ("sealed secret", f"{UNFILLED}${{secret.X}}: secret X cannot be opened", Remedy.VARIABLES),
    ("another reason", f"{REFUSED}out of cheese", None),
]  # fmt: skip


def test_each_refusal_has_its_remedy() -> None:
    found = {name: find_remedy(find_reason(500, 0, Messages(line))) for name, line, _ in RULES}
    assert found == {name: remedy for name, _, remedy in RULES}
