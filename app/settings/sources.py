"""Sources of settings: the environment, files of settings, and files that hold one secret."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from app.errors import NotConfigured
from app.settings.env_files import ENCODING, read_env_file

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
class SettingValue:
    """Text of a setting and its source: the environment or a file."""

    text: str
    source: str


def gather(
    environ: Mapping[str, str], files: Collection[Path], *, names: Collection[str], secrets: Collection[str]
) -> dict[str, SettingValue]:
    """Return the settings by variable: those of ``environ`` override ``files``, of which a later one wins.

    Empty values, and what Kubernetes derives from a service, count as not set. A secret may be in a file
    named by its variable with ``_FILE`` at the end.
    Raises NotConfigured for an unknown variable, a file that cannot be read, or a secret given in both ways.
    """
    values: dict[str, SettingValue] = {}
    for path in files:
        values.update({name: SettingValue(text, str(path)) for name, text in read_env_file(path).items()})
    values.update(
        {
            name: SettingValue(text, ENVIRONMENT)
            for name, text in environ.items()
            if not _is_of_kubernetes(name, text)
        }
    )
    values = {
        name: SettingValue(value.text.strip(), value.source)
        for name, value in values.items()
        if name.startswith("XXL_JOB_") and value.text.strip()
    }
    file_variables = {name + IN_FILE for name in secrets}
    for name in sorted(values):
        if name in file_variables:
            values[name.removesuffix(IN_FILE)] = _secret(name, values)
        elif name not in names:
            raise NotConfigured(
                f"{name} is not a known setting{_suggestion(name, {*names, *file_variables})};"
                " see docs/configuration.md"
            )
    return {name: value for name, value in values.items() if name in names}


def _is_of_kubernetes(name: str, text: str) -> bool:
    """Whether Kubernetes set this variable for a service: ``XXL_JOB_PORT=tcp://10.0.0.7:8080``."""
    if not _KUBERNETES_NAME.fullmatch(name):
        return False
    is_link = name.endswith("_PORT") and not re.search(r"_SERVICE_PORT|_(TCP|UDP|SCTP)_PORT", name)
    return bool(_KUBERNETES_VALUE.match(text)) if is_link else True


def _secret(name: str, values: Mapping[str, SettingValue]) -> SettingValue:
    """Return the content of the file that the variable ``name`` names."""
    path, source = values[name].text, values[name].source
    plain = name.removesuffix(IN_FILE)
    if plain in values:
        raise NotConfigured(
            f"{plain} ({values[plain].source}) and {name} ({source}) are both set: set one of them"
        )
    try:
        text = Path(path).read_text(encoding=ENCODING).strip()
    except UnicodeDecodeError as exc:
        raise NotConfigured(f"{name}={path}: the file cannot be read: expected UTF-8") from exc
    except OSError as exc:
        value_text = f"={path}" if _is_path(Path(path)) else f" ({source})"
        raise NotConfigured(f"{name}{value_text}: the file cannot be read: {exc.strerror}") from exc
    if not text:
        raise NotConfigured(f"{name}={path}: the file is empty")
    return SettingValue(text, path)


def _is_path(path: Path) -> bool:
    """Whether a file could be there: a value that names none may be the secret itself."""
    folder = path.parent
    return path.is_absolute() and folder != Path(folder.anchor) and folder.is_dir()


def display_text(text: str) -> str:
    """Return the text of a setting as messages show it: without the user and password of a URL."""
    return re.sub(r"//.*@", "//…@", text, flags=re.DOTALL)


def _suggestion(name: str, names: Collection[str]) -> str:
    close = get_close_matches(name, names, n=1, cutoff=0.75)
    return f" (did you mean {close[0]}?)" if close else ""
