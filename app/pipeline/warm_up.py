"""Warm-up: one run through the pipeline, rolled back, so that the first real run is not slow.

SQLAlchemy compiles each statement at its first use, about 100 ms for all of them. That happens here, at the
start of a process.
"""

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import transact
from app.domain.enums import GlueType, HandleCode, TriggerType
from app.domain.runs.evidence import Fate, Verdict
from app.models.group import Group
from app.models.job import Job
from app.pipeline.claim import claim
from app.pipeline.claimed_run import Claimer
from app.pipeline.complete import Result, Source, complete
from app.pipeline.record import record
from app.pipeline.send import SendOutcome
from app.store.fires import queue as fires


class _Undo(Exception):
    """Rolls the transaction back."""


def warm_up(claimer: Claimer, *, now_ms: Millis) -> None:
    """Claim, record and complete two runs in a transaction that is rolled back."""

    def work(session: Session) -> None:
        group = Group(
            app_name="warm-up", title="warm-up", address_type=1, address_list="http://127.0.0.1:1024/"
        )
        session.add(group)
        session.flush()
        job = Job(job_group=group.id, job_desc="warm-up", glue_type=GlueType.BEAN.value, child_jobid="")
        session.add(job)
        session.flush()
        new = [
            fires.NewFire(f"warm-up:{job.id}:{number}", job.id, now_ms, TriggerType.CRON)
            for number in range(2)
        ]
        batch = claim(session, fires.insert_fires(session, new), claimer, now_ms=now_ms)
        verdict = Verdict(Fate.ACCEPTED, HandleCode.SUCCESS, "")
        record(
            session,
            [SendOutcome(run, verdict, (), 0) for run in batch.claims],
            node=claimer.node,
            now_ms=now_ms,
        )
        codes = (HandleCode.SUCCESS, HandleCode.FAIL)
        results = [
            Result(run.log_id, Source.CALLBACK, code) for run, code in zip(batch.claims, codes, strict=True)
        ]
        complete(session, results, now_ms=now_ms)
        raise _Undo

    try:
        transact(work)
    except _Undo:
        return
