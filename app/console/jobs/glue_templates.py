"""GLUE templates: the first source of a new GLUE job."""

from dataclasses import replace

from app.console.web.language import _
from app.domain.access.permissions import Actor, Right
from app.domain.jobs.fields import JobDraft
from app.domain.jobs.glue_languages import GLUE_LANGUAGES


def with_template(draft: JobDraft, actor: Actor) -> JobDraft:
    """Return a new job with the template of its language, if it has one and its author may write code."""
    language = GLUE_LANGUAGES.get(draft.glue_type)
    if language is None or not actor.may(draft.job_group, Right.GLUE):
        return draft
    return replace(draft, glue_source=language.template, glue_remark=_("Initial code"))
