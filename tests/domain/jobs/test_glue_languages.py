"""GLUE languages: a row for every run mode with code, and the client runs what is offered."""

from app.domain.enums import GlueType
from app.domain.jobs.glue_languages import GLUE_LANGUAGES
from executor_client.execution.glue import LANGUAGES
from tests.support.truth_table import truth_table


def test_every_run_mode_with_code_has_a_language() -> None:
    assert set(GLUE_LANGUAGES) == set(GlueType) - {GlueType.BEAN}
    for language in GLUE_LANGUAGES.values():
        assert language.template.endswith("\n")


@truth_table("glue_type", sorted(LANGUAGES))
def test_console_and_client_use_the_same_names(glue_type: str) -> None:
    assert GLUE_LANGUAGES[glue_type].title == LANGUAGES[glue_type].title
