"""Given values: results and parameters of other runs, and what a path finds in them."""

from app.domain.parameters.errors import NotFilled, quote
from app.domain.parameters.json_values import JsonValue, Missing, find_value, parse_json, storable
from app.domain.parameters.placeholders import GivenValue, Origin
from app.domain.parameters.values import GivenRun, Shards, Values
from app.domain.runs.trace_templates import (
    NO_PARENT,
    NO_RESULT,
    PARAMETER_HAS_NO,
    PARAMETER_NO_JSON,
    RESULT_HAS_NO,
    RESULT_NO_JSON,
    RESULT_WAS_CUT,
    SHARDS_HAVE_NO,
    fill,
)
from app.domain.runs.trigger_report import RESULT_CUT
from app.domain.text.texts import Text


class Default(str):
    """Default of a path, which is a JSON value where one stands, if it is JSON."""

    __slots__ = ()


class _Absent(NotFilled):
    """There is no value; a default stands for it."""


class GivenReader:
    """Reads values of other runs for one fill, and parses the JSON of each once."""

    def __init__(self, values: Values) -> None:
        self._values = values
        #: text -> its JSON; None: it is none
        self._parsed: dict[str, tuple[JsonValue] | None] = {}

    def value(self, item: GivenValue) -> JsonValue:
        """Return what a placeholder names: text without a path, else JSON; raise NotFilled."""
        try:
            return self._find(item)
        except _Absent:
            if item.default is None:
                raise
            return Default(item.default) if item.path else item.default

    def _find(self, item: GivenValue) -> JsonValue:
        if item.origin is Origin.OWN:
            return self._inside(item, self._values.own_param)
        source = self._source(item)
        if source is None:
            raise _absent(item, NO_PARENT)
        if not isinstance(source, GivenRun):
            return self._of_shards(item, source)
        return self._inside(item, _text_of(item, source), source.run_id)

    def _source(self, item: GivenValue) -> GivenRun | Shards | None:
        match item.origin:
            case Origin.PARENTS:
                return self._values.parents.get(item.key)
            case Origin.SHARDS:
                return self._values.shards
            case _:
                return self._values.parent

    def _inside(self, item: GivenValue, text: str, run_id: int = 0, path_begin: int = 0) -> JsonValue:
        """Return what the rest of the path finds in a text."""
        path = item.path[path_begin:]
        if not path:
            return storable(text)
        document = self._json(text)
        if document is None:
            raise _absent(item, RESULT_NO_JSON if item.is_result else PARAMETER_NO_JSON, id=run_id)
        try:
            return find_value(document[0], path)
        except Missing as exc:
            template = RESULT_HAS_NO if item.is_result else PARAMETER_HAS_NO
            raise _absent(item, template, id=run_id, path=quote(item.path_text)) from exc

    def _of_shards(self, item: GivenValue, runs: Shards) -> JsonValue:
        if not item.path:
            return [self._of_shard(item, run) for run in runs]
        index = item.path[0]
        if not isinstance(index, int) or not -len(runs) <= index < len(runs):
            raise _absent(item, SHARDS_HAVE_NO, path=quote(item.path_text))
        run = runs[index]
        if len(item.path) == 1:
            return self._of_shard(item, run)
        if run is None:
            raise _absent(item, SHARDS_HAVE_NO, path=quote(item.path_text))
        return self._inside(item, _text_of(item, run), run.run_id, path_begin=1)

    def _of_shard(self, item: GivenValue, run: GivenRun | None) -> JsonValue:
        """Return the value of a shard: its JSON, or its text; None if it is missing or has none."""
        if run is None or (item.is_result and run.result is None):
            return None
        text = _text_of(item, run)
        document = self._json(text)
        return storable(text) if document is None else document[0]

    def _json(self, text: str) -> tuple[JsonValue] | None:
        if text not in self._parsed:
            try:
                self._parsed[text] = (parse_json(text),)
            except ValueError:
                self._parsed[text] = None
        return self._parsed[text]


def _text_of(item: GivenValue, run: GivenRun) -> str:
    if not item.is_result:
        return run.param
    if run.result is None:
        raise _absent(item, NO_RESULT, id=run.run_id)
    if run.result.endswith(RESULT_CUT):
        raise NotFilled(fill(RESULT_WAS_CUT, at=quote(item.at), id=run.run_id))
    return run.result


def _absent(item: GivenValue, template: Text, **parameters: object) -> _Absent:
    return _Absent(fill(template, at=quote(item.at), **parameters))
