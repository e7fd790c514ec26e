"""Variables in values: ``${NAME}``, ``${env:NAME}`` of the environment, ``$${`` for a literal ``${``.

In the parameter of a job any other ``${…}`` with ``.`` or ``:`` is a placeholder of the console, such as
``${time-1d:yyyy-MM-dd}``, and stays as it is.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_USE = re.compile(r"\$(?P<escaped>\$\{)|\$\{(?P<name>[^{}]*)\}|(?P<open>\$\{)")
#: the same in a parameter, where a placeholder may hold braces
_USE_IN_PARAMETER = re.compile(r"\$(?P<escaped>\$\{)|\$\{(?P<name>(?:[^}$]|\$(?!\{))*)\}|(?P<open>\$\{)")
_NAME = re.compile(r"(?:env:)?[A-Za-z_][A-Za-z0-9_]*")
ENVIRONMENT = "env:"
#: variables of this program, such as its token, which no value of a file may contain
_SETTING_PREFIX = "XXL_JOB_"


class UndefinedVariable(ValueError):
    """A variable that is used has no value, or the use is malformed."""


@dataclass(frozen=True)
class Variables:
    """Values of variables, and the environment."""

    values: Mapping[str, str]
    environment: Mapping[str, str]

    def resolve(self, text: str) -> str:
        """Return a text with the values of its variables; raise UndefinedVariable."""
        return _USE.sub(self._value, text)

    def resolve_parameter(self, text: str) -> str:
        """Return the parameter of a job with the values of its variables; raise UndefinedVariable."""
        return _USE_IN_PARAMETER.sub(
            lambda use: use[0] if _is_placeholder(use) else self._value(use),
            text,
        )

    def _value(self, use: "re.Match[str]") -> str:
        if use["escaped"]:
            return "${"
        name = use["name"]
        if name is None:
            raise UndefinedVariable("${ without its }; write $${ for a literal ${")
        if _NAME.fullmatch(name) is None:
            raise UndefinedVariable(
                f"${{{name}}} is not a variable such as ${{REGION}} or ${{env:REGION}};"
                " write $${ for a literal ${"
            )
        if name.startswith(ENVIRONMENT):
            variable = name.removeprefix(ENVIRONMENT)
            if variable.upper().startswith(_SETTING_PREFIX):
                raise UndefinedVariable(f"{variable} is a setting of this program and may be secret")
            if variable not in self.environment:
                raise UndefinedVariable(f"the environment has no variable {variable}")
            return self.environment[variable]
        if name not in self.values:
            raise UndefinedVariable(
                f"the variable {name} has no value: add it to vars.yaml, or give --var {name}=VALUE"
            )
        return self.values[name]


def has_variable(text: str) -> bool:
    """Whether a text uses or escapes a variable."""
    return "${" in text


def escape(text: str) -> str:
    """Return a text in which nothing is a variable."""
    return text.replace("${", "$${")


def escape_parameter(text: str) -> str:
    """Return the parameter of a job so that nothing in it is a variable; placeholders stay as they are."""
    return _USE_IN_PARAMETER.sub(lambda use: use[0] if _is_placeholder(use) else f"${use[0]}", text)


def _is_placeholder(use: "re.Match[str]") -> bool:
    name = use["name"] or ""
    return ("." in name or ":" in name) and not name.startswith(ENVIRONMENT)
