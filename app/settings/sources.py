"""Where settings come from: the environment, files of settings, and files that hold one secret."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from app.errors import NotConfigured
from app.settings.env_files import read_env_file

#: ending of the variable that names a file with the value
IN_FILE = "_FILE"
ENVIRONMENT = "environment"
#: Kubernetes sets these for a service called ``xxl-job`` or ``xxl-job-…``
_KUBERNETES_NAME = re.compile(
    r"XXL_JOB_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)",
    re.ASCII,
)
_KUBERNETES_VALUE = re.compile(r"(tcp|udp|sctp)://")


@dataclass(frozen=True, slots=True)
class Given:
    """Text of a setting, and where it was found: the environment or a file."""

    text: str
    source: str


def gather(
    environ: Mapping[str, str], files: Collection[Path], *, known: Collection[str], secrets: Collection[str]
) -> dict[str, Given]:
    """Return the settings by variable: those of ``environ`` override ``files``, of which a later one wins.

    Empty values, and what Kubernetes derives from a service, count as not set. A secret may be in a file
    named by its variable with ``_FILE`` at the end.
    Raises NotConfigured for an unknown variable, a file that cannot be read, or a secret given in both ways.
    """
    given: dict[str, Given] = {}
    for path in files:
        given.update({name: Given(text, str(path)) for name, text in read_env_file(path).items()})
    given.update(
        {
            name: Given(text, ENVIRONMENT)
            for name, text in environ.items()
            if not _is_of_kubernetes(name, text)
        }
    )
    given = {
        name: Given(value.text.strip(), value.source)
        for name, value in given.items()
        if name.startswith("XXL_JOB_") and value.text.strip()
    }
    in_files = {name + IN_FILE for name in secrets}
    for name in sorted(given):
        if name in in_files:
            given[name.removesuffix(IN_FILE)] = _secret(name, given)
        elif name not in known:
            raise NotConfigured(
                f"{name} is not a known setting{_suggestion(name, {*known, *in_files})};"
                " see docs/configuration.md"
            )
    return {name: value for name, value in given.items() if name in known}


def _is_of_kubernetes(name: str, text: str) -> bool:
    """Whether Kubernetes set this variable for a service: ``XXL_JOB_PORT=tcp://10.0.0.7:8080``."""
    if not _KUBERNETES_NAME.fullmatch(name):
        return False
    is_link = name.endswith("_PORT") and not re.search(r"_SERVICE_PORT|_(TCP|UDP|SCTP)_PORT", name)
    return bool(_KUBERNETES_VALUE.match(text)) if is_link else True


def _secret(name: str, given: Mapping[str, Given]) -> Given:
    """Return the content of the file that the variable ``name`` names."""
    path, named_in = given[name].text, given[name].source
    plain = name.removesuffix(IN_FILE)
    if plain in given:
        raise NotConfigured(
            f"{plain} ({given[plain].source}) and {name} ({named_in}) are both set: set one of them"
        )
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as exc:
        raise NotConfigured(f"{name}={path}: the file cannot be read: expected UTF-8") from exc
    except OSError as exc:
        raise NotConfigured(f"{name}={path}: the file cannot be read: {exc.strerror}") from exc
    if not text:
        raise NotConfigured(f"{name}={path}: the file is empty")
    return Given(text, path)


def _suggestion(name: str, known: Collection[str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.75)
    return f" (did you mean {close[0]}?)" if close else ""
