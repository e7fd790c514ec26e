"""Check of misfire strategies: those that a Java admin on the same database does not know. Reads only."""

from sqlalchemy.orm import Session

from app.services.doctor.findings import Findings, NothingFound, check, name_list, warning
from app.settings.config import Config
from app.store.nodes import diagnosis


@check("missed runs")
def check_misfires(session: Session, config: Config) -> Findings:
    """Name jobs that run all that was missed, of which a Java admin would run nothing."""
    job_ids = diagnosis.find_running_all(session) if config.shared_with_java else []
    if names := [str(job_id) for job_id in job_ids]:
        yield warning(
            f"jobs that run all they have missed, of which a Java admin runs nothing: {name_list(names)}",
            "choose another misfire strategy, or end the Java admin and unset XXL_JOB_SHARED_WITH_JAVA",
        )
    yield NothingFound("every admin knows the misfire strategies")
