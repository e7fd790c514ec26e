"""YAML writer: multi-line texts as blocks, members in their order, no aliases."""

import re
from typing import Any

import yaml

from executor_client.code.yaml_reading import scalar

#: longest line that is not folded
WIDTH = 110
#: read as a line break unless it is escaped, which only double quotes allow
NEXT_LINE = "\x85"


class _Dumper(yaml.SafeDumper):
    """YAML dumper that writes multi-line texts as blocks, and no aliases."""

    def ignore_aliases(self, _data: Any) -> bool:
        """Return True: equal values are written out again instead of as an alias."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_block = "\n" in text and not re.search(r"[ \t]\n|^\s|\r", text)
    # Our reader takes more texts for numbers and words than YAML does, so that these need quotes.
    quotes = "'" if scalar(text) != text else None
    style = '"' if NEXT_LINE in text else "|" if is_block else quotes
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dump(value: Any) -> str:
    """Return a JSON value as YAML."""
    return str(
        yaml.dump(
            value,
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            width=WIDTH,
            default_flow_style=False,
        )
    )
