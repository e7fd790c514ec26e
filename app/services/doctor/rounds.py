"""Check of what jobs run after: circles of children, predecessors that never run. Reads only."""

from sqlalchemy.orm import Session

from app.domain.rounds.cycles import find_cycles
from app.services.doctor.findings import Findings, NothingFound, check, name_list, warning
from app.settings.config import Config
from app.store.nodes import diagnosis
from app.store.rounds.edges import read_links

#: most circles that are named
CIRCLES_MAX = 5


@check("rounds")
def check_rounds(session: Session, config: Config) -> Findings:
    """Name jobs that lead to themselves, predecessors that are gone or off, and what a Java admin ignores."""
    leads_to: dict[int, set[int]] = {}
    for link in read_links(session):
        leads_to.setdefault(link.source, set()).add(link.target)
    for circle in find_cycles(leads_to, most=CIRCLES_MAX):
        path = " → ".join(map(str, [*circle, circle[0]]))
        yield warning(f"jobs start each other forever: {path}", "take one of them out of the child jobs")
    dead = diagnosis.find_dead_edges(session)
    missing = [f"{edge.job_id} (after {edge.predecessor_id})" for edge in dead if edge.is_gone]
    if missing:
        yield warning(
            f"jobs run after jobs that are gone, which counts as not run: {name_list(missing)}",
            "take the jobs that are gone out of what these run after",
        )
    silent = [f"{edge.job_id} (after {edge.predecessor_id})" for edge in dead if not edge.is_gone]
    if silent:
        yield warning(
            f"jobs run after jobs whose schedule is off, and wait until their deadlines: {name_list(silent)}",
            "switch the schedules on, or take these jobs out of what the others run after",
        )
    following = diagnosis.find_following(session) if config.shared_with_java else []
    if following:
        names = name_list([str(job_id) for job_id in following])
        yield warning(
            f"jobs run after others, which runs of a Java admin do not start: {names}",
            "make them child jobs, or end the Java admin and unset XXL_JOB_SHARED_WITH_JAVA",
        )
    yield NothingFound("no job leads to itself, and none waits for one that never runs")
