"""Folder of jobs as code: all its YAML files as one document, with the place of every value.

``DIR`` may have overlays: with a folder ``DIR/base``, that folder is read, and then those that are named,
whose members replace those of the same key.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from executor_client.code import members
from executor_client.code.source_locations import CodeError, InvalidCode, Place
from executor_client.code.variables import Variables
from executor_client.code.yaml_reading import Reader, Resolver, Value

FORMAT = 1
BASE = "base"
VARIABLES = "vars.yaml"
SUFFIXES = frozenset({".yaml", ".yml"})
#: longest GLUE source, in characters
SOURCE_MAX = 500_000


@dataclass(frozen=True)
class Folder:
    """What to read."""

    path: Path
    overlays: Sequence[str] = ()
    #: values of variables, which win over those of files
    variables: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Loaded:
    """Document as the API takes it, and the place of each of its members by its name in errors."""

    document: dict[str, Any]
    places: dict[str, Place]
    files: int = 0

    def error(self, field_name: str, reason: str) -> CodeError:
        """Return an error of the API at the place of the value it names."""
        name = field_name.removeprefix("document.")
        searched = name
        while searched and searched not in self.places:
            searched = searched.rpartition(".")[0]
        place = self.places.get(searched)
        rest = name.removeprefix(searched).lstrip(".")
        shown = ".".join(filter(None, [searched, rest]))
        return CodeError(place, f"{shown}: {reason}" if shown else reason)


def load(folder: Folder) -> Loaded:
    """Return the document of a folder; raise InvalidCode with all errors."""
    return _Loading(folder).load()


def load_text(text: str, name: str) -> Loaded:
    """Return the document of a file without a folder: it has neither variables nor files of code beside it.

    ``name`` is that of the file in errors. Raise InvalidCode with all errors.
    """
    return _Loading(Folder(Path(name)), has_files=False).load_text(text, name)


class _Loading:
    """One reading of a folder, or of a file without one."""

    def __init__(self, folder: Folder, *, has_files: bool = True) -> None:
        self.folder, self.errors = folder, list[CodeError]()
        self.has_files = has_files
        self.reader = Reader(self.errors.append)
        self.resolver = Resolver(Variables({}, {}), self.errors.append)
        self.loaded = Loaded({"format": FORMAT, "groups": {}, "jobs": {}, "channels": {}}, {})
        #: objects of the layer that is being read
        self.seen: dict[str, Place] = {}

    def load_text(self, text: str, name: str) -> Loaded:
        content = self.reader.parse(text, name)
        if content is not None:
            self._read_file(Path(name), content)
        if self.errors:
            raise InvalidCode(self.errors)
        return self.loaded

    def load(self) -> Loaded:
        layers = list(self._layers())
        self.resolver = Resolver(self._variables(layers), self.errors.append)
        for layer in layers:
            self.seen = {}
            for path in _files(layer):
                content = self._content(path)
                self.loaded.files += 1
                if content is not None:
                    self._read_file(path, content)
        if not self.loaded.files and not self.errors:
            self.errors.append(CodeError(Place(str(self.folder.path)), "has no YAML file"))
        if self.errors:
            raise InvalidCode(self.errors)
        return self.loaded

    def _layers(self) -> Iterator[Path]:
        """Yield the folders to read, in their order."""
        root = self.folder.path
        if not root.is_dir():
            raise InvalidCode([CodeError(Place(str(root)), "is not a folder")])
        base = root / BASE
        if not base.is_dir():
            if self.folder.overlays:
                raise InvalidCode(
                    [CodeError(Place(str(root)), f"overlays need a folder {BASE} with what is common to all")]
                )
            yield root
            return
        yield base
        for name in self.folder.overlays:
            if not (root / name).is_dir() or name == BASE or "/" in name:
                others = sorted(each.name for each in root.iterdir() if each.is_dir() and each.name != BASE)
                known = ", ".join(each for each in others if not each.startswith(".")) or "none"
                raise InvalidCode(
                    [CodeError(Place(str(root)), f"there is no overlay {name}; known: {known}")]
                )
            yield root / name

    def _variables(self, layers: Sequence[Path]) -> Variables:
        values: dict[str, str] = {}
        outside = Resolver(Variables(self.folder.variables, self.folder.environment), self.errors.append)
        for layer in dict.fromkeys([self.folder.path, *layers]):
            path = layer / VARIABLES
            content = self._content(path) if path.is_file() else None
            if content is None:
                continue
            if not content.is_mapping:
                self.errors.append(CodeError(content.place, "must be a mapping such as REGION: eu-west"))
                continue
            for name, value in content.content.items():
                if isinstance(value.content, dict | list):
                    self.errors.append(CodeError(value.place, f"the variable {name} must be one value"))
                    continue
                value.is_plain = False
                values[name] = outside.plain(value)
        return Variables({**values, **self.folder.variables}, self.folder.environment)

    def _content(self, path: Path) -> Value | None:
        """Return the content of a YAML file; None, with an error, for a link that leads out of the folder."""
        if self._is_inside(path):
            return self.reader.read(path, str(path))
        self._report(Place(str(path)), f"leads outside of {self.folder.path}")
        return None

    def _is_inside(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self.folder.path.resolve())

    def _read_file(self, path: Path, content: Value) -> None:
        if not content.is_mapping:
            self._report(content.place, "a file is a mapping with jobs, groups or channels")
            return
        group = ""
        for name, value in content.content.items():
            if name not in members.GROUP_FILE:
                self._report(content.keys[name], members.unknown(name, members.GROUP_FILE))
            elif name == "group":
                group = str(self.resolver.plain(value))
        for section in ("groups", "jobs", "channels"):
            value = content.content.get(section)
            if value is None or value.content in ("", "~", "null"):
                continue
            if not value.is_mapping:
                self._report(value.place, f"{section} is a mapping of keys to their members")
                continue
            for key, object_ in value.content.items():
                self._read_object(path, section, (key, value.keys[key]), object_, group)

    def _read_object(
        self, path: Path, section: str, named: tuple[str, Place], value: Value, group: str
    ) -> None:
        key, place = named
        if section == "jobs" and "/" not in key:
            if not group:
                self._report(place, f"name the group of this file (group: …), or write <AppName>/{key}")
                return
            key = f"{group}/{key}"
        name = f"{section}.{key}"
        if name in self.seen:
            self._report(place, f"{name} is defined twice, first at {self.seen[name]}")
            return
        self.seen[name] = place
        if value.content in ("", "~", "null") and value.is_plain:
            value = Value({}, value.place)
        if not value.is_mapping:
            self._report(value.place, f"{name} is a mapping of members")
            return
        self.loaded.places[name] = place
        merged = self.loaded.document[section].setdefault(key, {})
        for member, each in value.content.items():
            known = members.OF_SECTION[section]
            if member not in known:
                self._report(value.keys[member], f"{name}: {members.unknown(member, known)}")
                continue
            self._forget(f"{name}.{member}")
            self._keep_places(f"{name}.{member}", each, value.keys[member])
            if member == "code":
                merged[member] = self._code(path, name, each)
            elif member == "settings" and each.is_mapping:
                merged[member] = {**merged.get(member, {}), **self.resolver.plain(each)}
            else:
                merged[member] = self.resolver.plain(each)

    def _code(self, path: Path, name: str, value: Value) -> Any:
        """Return the code of a job; nothing in its source is a variable."""
        if not value.is_mapping:
            self._report(value.place, f"{name}.code is a mapping with language, and file or source")
            return {}
        code: dict[str, Any] = {}
        for member, each in value.content.items():
            if member not in members.CODE:
                self._report(value.keys[member], f"{name}.code: {members.unknown(member, members.CODE)}")
            elif member == "source":
                code[member] = self.resolver.plain(each, is_literal=True)
            else:
                code[member] = self.resolver.plain(each)
        if "file" in code:
            if "source" in code:
                self._report(value.keys["file"], f"{name}.code: name either file or source")
            code["source"] = self._source(path, str(code.pop("file")), value.content["file"].place)
        return code

    def _source(self, path: Path, name: str, place: Place) -> str:
        if not self.has_files:
            self._report(place, f"{name} cannot be read here; give its text as source")
            return ""
        found = path.parent / name
        if "\0" in name or not self._is_inside(found):
            self._report(place, f"{name} lies outside of {self.folder.path}")
            return ""
        try:
            if found.exists() and not found.is_file():  # reading a pipe would wait for its writer
                self._report(place, f"{name} is not a file")
                return ""
            source = found.read_bytes().decode("utf-8-sig")
        except OSError as exc:
            self._report(place, f"{name} cannot be read: {exc.strerror}")
            return ""
        except UnicodeDecodeError:
            self._report(place, f"{name} is not UTF-8")
            return ""
        if len(source) > SOURCE_MAX:
            self._report(place, f"{name} has more than {SOURCE_MAX} characters")
        return source

    def _keep_places(self, name: str, value: Value, place: Place) -> None:
        self.loaded.places[name] = place
        if isinstance(value.content, dict):
            for member, each in value.content.items():
                self._keep_places(f"{name}.{member}", each, value.keys[member])
        elif isinstance(value.content, list):
            for number, each in enumerate(value.content):
                self._keep_places(f"{name}.{number}", each, each.place)

    def _forget(self, name: str) -> None:
        """Forget the places of a member that an overlay replaces."""
        if name in self.loaded.places and not name.endswith(".settings"):
            for each in [each for each in self.loaded.places if each.startswith(f"{name}.")]:
                del self.loaded.places[each]

    def _report(self, place: Place, problem: str) -> None:
        self.errors.append(CodeError(place, problem))


def _files(layer: Path) -> list[Path]:
    """Return the YAML files below a folder by name, without hidden ones and those of variables."""
    found = [
        path
        for path in sorted(layer.rglob("*"))
        if path.suffix in SUFFIXES and path.name != VARIABLES and path.is_file()
    ]
    return [path for path in found if not any(part.startswith(".") for part in path.relative_to(layer).parts)]
