"""Maskers of runs: the values of the secrets that were sent with them, present and former ones.

What executors return of a run passes its masker before it is stored or shown; runs without secrets have none
and cost no statement.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import ParamForm
from app.domain.parameters.marked_text import may_name_secret, secrets_of
from app.domain.parameters.masking import Masker
from app.store.fires import earlier_runs, logs
from app.store.variables import values as variables


class SentRun(Protocol):
    """A log row with its parameter, of which a narrow column may have kept only the beginning."""

    @property
    def id(self) -> int:
        """Log id."""

    @property
    def job_group(self) -> int:
        """Executor group whose secrets were sent."""

    @property
    def param_form(self) -> int:
        """ParamForm."""

    @property
    def executor_param(self) -> str | None:
        """Template."""


class SentSecrets(NamedTuple):
    """Names of the secrets that were sent with a run, and the group whose they are."""

    group_id: int
    names: Collection[str]


def find_maskers(session: Session, runs: Iterable[SentRun], *, now_ms: Millis) -> dict[int, Masker]:
    """Return log id -> masker, for the runs with which secrets were sent: two statements, or none."""
    groups = {run.id: run.job_group for run in runs if _may_have_secrets(session, run)}
    if not groups:
        return {}
    filled_runs = earlier_runs.find_filled(session, groups)
    secrets_by_run = {
        log_id: SentSecrets(groups[log_id], names)
        for log_id, run in filled_runs.items()
        if (names := secrets_of(run.marked_text or ""))
    }
    return maskers_of(session, secrets_by_run, now_ms=now_ms)


def maskers_of(
    session: Session, secrets_by_run: Mapping[int, SentSecrets], *, now_ms: Millis
) -> dict[int, Masker]:
    """Return log id -> masker of runs whose secrets are known: one statement, or none."""
    if not secrets_by_run:
        return {}
    names_by_group: dict[int, set[str]] = {}
    for secrets in secrets_by_run.values():
        names_by_group.setdefault(secrets.group_id, set()).update(secrets.names)
    values = variables.find_masked_by_group(session, names_by_group, now_ms=now_ms)
    # Runs of a job have the same secrets: one masker for all.
    masker_by_secrets: dict[tuple[int, frozenset[str]], Masker] = {}
    maskers = {}
    for log_id, secrets in secrets_by_run.items():
        key = secrets.group_id, frozenset(secrets.names)
        if key not in masker_by_secrets:
            masker_by_secrets[key] = Masker(item for item in values[key[0]] if item.name in key[1])
        maskers[log_id] = masker_by_secrets[key]
    return maskers


def mask_text(maskers: Mapping[int, Masker], log_id: int, text: str | None) -> str | None:
    """Return a text of a run without values of its secrets."""
    masker = maskers.get(log_id)
    return text if masker is None or text is None else masker.mask(text)


def _may_have_secrets(session: Session, run: SentRun) -> bool:
    if run.param_form != ParamForm.TEMPLATE:
        return False
    template = run.executor_param or ""
    return may_name_secret(template) or logs.is_cut(session, "executor_param", template)
