"""Rule of `limit_key`: a template with placeholders of the parameter of a run, and no others."""

from app.domain.parameters.errors import InvalidTemplate
from app.domain.parameters.placeholders import GivenValue, Origin
from app.domain.parameters.template import parse
from app.domain.text.texts import N_
from app.errors import InvalidInput

#: name of the field in errors
FIELD = "limitKey"


def check_key(text: str) -> None:
    """Raise InvalidInput for a text that is no template such as ``${param.customer}``."""
    try:
        template = parse(text, with_param=True)
    except InvalidTemplate as exc:
        raise InvalidInput(FIELD, exc.message) from exc
    placeholders = [piece for piece in template.pieces if not isinstance(piece, str)]
    for placeholder in placeholders:
        if not (isinstance(placeholder, GivenValue) and placeholder.origin is Origin.OWN):
            problem = N_(
                "'%(at)s': only ${param} and its members can stand here, such as ${param.customer}",
                at=placeholder.at,
            )
            raise InvalidInput(FIELD, problem)
    if not placeholders:
        raise InvalidInput(FIELD, N_("Enter a placeholder of the parameter, such as ${param.customer}"))
