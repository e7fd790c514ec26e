"""Loader for folders of jobs as code: their YAML files as one document, with the location of every value.

A folder with a subfolder ``base`` may have overlays: ``base`` is read first, then the requested overlays,
whose members replace those of the same key.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from executor_client.code import members
from executor_client.code.source_locations import CodeError, InvalidCode, SourceLocation
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
    """Folder to load, its overlays, and the values of variables."""

    path: Path
    overlays: Sequence[str] = ()
    #: values of variables, which win over those of files
    variables: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class LoadedFolder:
    """Document for the API, and the source location of each of its members, keyed by its name in errors."""

    document: dict[str, Any]
    locations: dict[str, SourceLocation]
    files: int = 0

    def error(self, field_name: str, reason: str) -> CodeError:
        """Return an error of the API as one at the location of the value that it names."""
        name = field_name.removeprefix("document.")
        prefix = name
        while prefix and prefix not in self.locations:
            prefix = prefix.rpartition(".")[0]
        location = self.locations.get(prefix)
        rest = name.removeprefix(prefix).lstrip(".")
        label = ".".join(filter(None, [prefix, rest]))
        return CodeError(location, f"{label}: {reason}" if label else reason)


def load(folder: Folder) -> LoadedFolder:
    """Return the document of a folder; raise InvalidCode with all errors."""
    return _FolderLoader(folder).load()


def load_text(text: str, name: str) -> LoadedFolder:
    """Return the document of a file without a folder: it has neither variables nor files of code beside it.

    ``name`` is that of the file in errors. Raise InvalidCode with all errors.
    """
    return _FolderLoader(Folder(Path(name)), has_files=False).load_text(text, name)


class _FolderLoader:
    """Loads one folder, or one file without a folder, once, and collects its errors."""

    def __init__(self, folder: Folder, *, has_files: bool = True) -> None:
        self.folder, self.errors = folder, list[CodeError]()
        self.has_files = has_files
        self.reader = Reader(self.errors.append)
        self.resolver = Resolver(Variables({}, {}), self.errors.append)
        self.result = LoadedFolder({"format": FORMAT, "groups": {}, "jobs": {}, "channels": {}}, {})
        #: objects of the layer that is being read, to report duplicates
        self.layer_objects: dict[str, SourceLocation] = {}

    def load_text(self, text: str, name: str) -> LoadedFolder:
        content = self.reader.parse(text, name)
        if content is not None:
            self._read_file(Path(name), content)
        if self.errors:
            raise InvalidCode(self.errors)
        return self.result

    def load(self) -> LoadedFolder:
        layers = list(self._layers())
        self.resolver = Resolver(self._variables(layers), self.errors.append)
        for layer in layers:
            self.layer_objects = {}
            for path in _files(layer):
                content = self._content(path)
                self.result.files += 1
                if content is not None:
                    self._read_file(path, content)
        if not self.result.files and not self.errors:
            self.errors.append(CodeError(SourceLocation(str(self.folder.path)), "has no YAML file"))
        if self.errors:
            raise InvalidCode(self.errors)
        return self.result

    def _layers(self) -> Iterator[Path]:
        """Yield the folders to read, in their order."""
        root = self.folder.path
        if not root.is_dir():
            raise self._unusable("is not a folder")
        if not (root / BASE).is_dir():
            if self.folder.overlays:
                raise self._unusable(f"overlays need a folder {BASE} with what is common to all")
            yield root
            return
        yield root / BASE
        for name in self.folder.overlays:
            if not (root / name).is_dir() or name == BASE or "/" in name:
                names = sorted(path.name for path in root.iterdir() if path.is_dir() and path.name != BASE)
                overlays = ", ".join(folder for folder in names if not folder.startswith("."))
                raise self._unusable(f"there is no overlay {name}; known: {overlays or 'none'}")
            yield root / name

    def _unusable(self, problem: str) -> InvalidCode:
        return InvalidCode([CodeError(SourceLocation(str(self.folder.path)), problem)])

    def _variables(self, layers: Sequence[Path]) -> Variables:
        values: dict[str, str] = {}
        outside = Resolver(Variables(self.folder.variables, self.folder.environment), self.errors.append)
        for layer in dict.fromkeys([self.folder.path, *layers]):
            path = layer / VARIABLES
            content = self._content(path) if path.is_file() else None
            if content is None:
                continue
            if not content.is_mapping:
                self.errors.append(CodeError(content.location, "must be a mapping such as REGION: eu-west"))
                continue
            for name, value in content.content.items():
                if isinstance(value.content, dict | list):
                    self.errors.append(CodeError(value.location, f"the variable {name} must be one value"))
                    continue
                value.is_plain = False
                values[name] = outside.plain(value)
        return Variables({**values, **self.folder.variables}, self.folder.environment)

    def _content(self, path: Path) -> Value | None:
        """Return the content of a YAML file; None, with an error, for a link that leads out of the folder."""
        if self._is_inside(path):
            return self.reader.read(path, str(path))
        self._report(SourceLocation(str(path)), f"leads outside of {self.folder.path}")
        return None

    def _is_inside(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self.folder.path.resolve())

    def _read_file(self, path: Path, content: Value) -> None:
        if not content.is_mapping:
            self._report(content.location, "a file is a mapping with jobs, groups, calendars or channels")
            return
        group = ""
        for name, value in content.content.items():
            if name not in members.GROUP_FILE:
                self._report(content.keys[name], members.unknown(name, members.GROUP_FILE))
            elif name == "group":
                group = str(self.resolver.plain(value))
        for section in members.OF_SECTION:
            value = content.content.get(section)
            if value is None or value.content in ("", "~", "null"):
                continue
            if not value.is_mapping:
                self._report(value.location, f"{section} is a mapping of keys to their members")
                continue
            for key, object_ in value.content.items():
                self._read_object(path, section, (key, value.keys[key]), object_, group)

    def _read_object(
        self, path: Path, section: str, key_at: tuple[str, SourceLocation], value: Value, group: str
    ) -> None:
        key, location = key_at
        if section == "jobs" and "/" not in key:
            if not group:
                self._report(location, f"name the group of this file (group: …), or write <AppName>/{key}")
                return
            key = f"{group}/{key}"
        name = f"{section}.{key}"
        if name in self.layer_objects:
            self._report(location, f"{name} is defined twice, first at {self.layer_objects[name]}")
            return
        self.layer_objects[name] = location
        if value.content in ("", "~", "null") and value.is_plain:
            value = Value({}, value.location)
        if not value.is_mapping:
            self._report(value.location, f"{name} is a mapping of members")
            return
        self.result.locations[name] = location
        # An older console knows no calendars.
        object_members = self.result.document.setdefault(section, {}).setdefault(key, {})
        for member, member_value in value.content.items():
            member_names = members.OF_SECTION[section]
            if member not in member_names:
                self._report(value.keys[member], f"{name}: {members.unknown(member, member_names)}")
                continue
            self._drop_locations(f"{name}.{member}")
            self._record_locations(f"{name}.{member}", member_value, value.keys[member])
            if member == "code":
                object_members[member] = self._code(path, name, member_value)
            elif member == "settings" and member_value.is_mapping:
                object_members[member] = {
                    **object_members.get(member, {}),
                    **self.resolver.plain(member_value),
                }
            else:
                is_parameter = section == "jobs" and member == members.PARAMETER
                object_members[member] = self.resolver.plain(member_value, is_parameter=is_parameter)

    def _code(self, path: Path, name: str, value: Value) -> Any:
        """Return the code of a job; nothing in its source is a variable."""
        if not value.is_mapping:
            self._report(value.location, f"{name}.code is a mapping with language, and file or source")
            return {}
        code: dict[str, Any] = {}
        for member, member_value in value.content.items():
            if member not in members.CODE:
                self._report(value.keys[member], f"{name}.code: {members.unknown(member, members.CODE)}")
            elif member == "source":
                code[member] = self.resolver.plain(member_value, is_literal=True)
            else:
                code[member] = self.resolver.plain(member_value)
        if "file" in code:
            if "source" in code:
                self._report(value.keys["file"], f"{name}.code: name either file or source")
            code["source"] = self._source(path, str(code.pop("file")), value.content["file"].location)
        return code

    def _source(self, path: Path, name: str, location: SourceLocation) -> str:
        if not self.has_files:
            self._report(location, f"{name} cannot be read here; give its text as source")
            return ""
        file_path = path.parent / name
        if "\0" in name or not self._is_inside(file_path):
            self._report(location, f"{name} lies outside of {self.folder.path}")
            return ""
        try:
            if file_path.exists() and not file_path.is_file():  # reading a pipe would wait for its writer
                self._report(location, f"{name} is not a file")
                return ""
            source = file_path.read_bytes().decode("utf-8-sig")
        except OSError as exc:
            self._report(location, f"{name} cannot be read: {exc.strerror}")
            return ""
        except UnicodeDecodeError:
            self._report(location, f"{name} is not UTF-8")
            return ""
        if len(source) > SOURCE_MAX:
            self._report(location, f"{name} has more than {SOURCE_MAX} characters")
        return source

    def _record_locations(self, name: str, value: Value, location: SourceLocation) -> None:
        self.result.locations[name] = location
        if isinstance(value.content, dict):
            for member, child in value.content.items():
                self._record_locations(f"{name}.{member}", child, value.keys[member])
        elif isinstance(value.content, list):
            for number, child in enumerate(value.content):
                self._record_locations(f"{name}.{number}", child, child.location)

    def _drop_locations(self, name: str) -> None:
        """Drop the locations of a member that an overlay replaces."""
        if name in self.result.locations and not name.endswith(".settings"):
            for location in [path for path in self.result.locations if path.startswith(f"{name}.")]:
                del self.result.locations[location]

    def _report(self, location: SourceLocation, problem: str) -> None:
        self.errors.append(CodeError(location, problem))


def _files(layer: Path) -> list[Path]:
    """Return the YAML files below a folder by name, without hidden files and those of variables."""
    paths = [
        path
        for path in sorted(layer.rglob("*"))
        if path.suffix in SUFFIXES and path.name != VARIABLES and path.is_file()
    ]
    return [path for path in paths if not any(part.startswith(".") for part in path.relative_to(layer).parts)]
