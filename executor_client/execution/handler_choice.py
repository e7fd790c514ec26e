"""Handler choice: the registered handler of a trigger, or its GLUE script."""

from executor_client.execution.glue import LANGUAGES, GlueScript
from executor_client.handlers.registry import Handler, HandlerRegistry
from executor_client.wire.errors import TriggerRefused
from executor_client.wire.handler_names import nearest_name
from executor_client.wire.protocol import MSG_GLUE_NOT_VALID, MSG_HANDLER_NOT_FOUND, RunRequest

#: handlers named in the refusal of an unknown one
NAMED_MAX = 10


def choose_handler(
    request: RunRequest, handlers: HandlerRegistry, allow_glue: frozenset[str]
) -> Handler | GlueScript:
    """Return what a trigger runs; raise TriggerRefused for an unknown handler or a language not allowed."""
    if request.glue_type == "BEAN":
        handler = handlers.find(request.executor_handler)
        if handler is None:
            raise TriggerRefused(_not_found(request.executor_handler, handlers))
        return handler
    language = LANGUAGES.get(request.glue_type)
    if language is None:
        hint = " Groovy requires a Java executor." if request.glue_type == "GLUE_GROOVY" else ""
        raise TriggerRefused(MSG_GLUE_NOT_VALID.format(request.glue_type) + hint)
    if language.name not in allow_glue:
        hint = f"start this executor with --allow-glue {language.name} to allow it"
        raise TriggerRefused(f"fail, current glue type [{language.title}] not supported. {hint}")
    return GlueScript(request.job_id, request.glue_type, request.glue_updatetime, request.glue_source)


def _not_found(name: str, handlers: HandlerRegistry) -> str:
    """Return the message of XXL-JOB, and the handler that is meant, or those that exist."""
    message, names = MSG_HANDLER_NOT_FOUND.format(name), handlers.names()
    if near := nearest_name(name, names):
        return f"{message} Did you mean {near}?"
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return f"{message} This executor has {', '.join(names[:NAMED_MAX]) or 'none'}{more}."
