"""Static files: URLs with a hash of the content, cached by browsers for a year, compressed once.

``url_for('static', filename='js/app.js')`` gives ``…/js/app.0a1b2c3d4e5f.js``. The name without a hash, and
with the hash of another version, works too; the browser then checks its copy each time: during an upgrade
pages of one version ask for files of the other. The names that scripts import get their hashes when they are
read, so that the hash of a script depends on those that it imports. Comments of the console's own scripts are
left out; their lines stay, so that an error names the line of the file.
"""

import gzip
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path
from posixpath import normpath
from stat import S_ISREG
from typing import Any

from flask import Flask, Response, abort, current_app, request
from werkzeug.security import safe_join

from app.console.web import style
from app.console.web.style import HASH_LENGTH

#: cached files; the console has 150, most of them languages of the editor
FILES_MAX = 400
#: files that are generated, not read
GENERATORS: dict[str, Callable[[], bytes]] = {"css/console.css": style.style_sheet}
#: a script that another one imports, ``from "./copy.js"`` or ``import("./copy.js")``; there are no circles
_IMPORT = re.compile(r'((?:\bfrom |\bimport\())"(\.[^"]+\.js)"')
#: a comment that begins a line of a script
_COMMENT = re.compile(rb"^[ \t]*/\*.*?\*/", re.DOTALL | re.MULTILINE)
FOR_EVER = "public, max-age=31536000, immutable"
PACKED_TYPES = re.compile(r"text/.*|application/(?:json|javascript|xml)|image/svg\+xml")
_NAME = re.compile(rf"(.+)\.([0-9a-f]{{{HASH_LENGTH}}})(\.\w+)")
#: a name with a hash by the vendor
_VENDORS_HASH = re.compile(r"vendor/.*-[\w-]{8}\.js")


@dataclass(frozen=True, slots=True)
class StaticFile:
    """Content of a file; ``gzip_content`` is None where packing saves nothing."""

    digest: str
    content: bytes
    gzip_content: bytes | None
    mimetype: str


def init_app(app: Flask) -> None:
    """Serve the static files, and put hashes into their addresses."""
    app.view_functions["static"] = _serve
    app.url_defaults(_add_hash)


def _add_hash(endpoint: str, values: dict[str, Any]) -> None:
    if endpoint == "static" and (file := _find(values["filename"])):
        values["filename"] = _name_with(file.digest, values["filename"])


def _name_with(digest: str, name: str) -> str:
    stem, _dot, suffix = name.rpartition(".")
    return f"{stem}.{digest}.{suffix}"


def _serve(filename: str) -> Response:
    file, digest = _find(filename), ""
    if file is None and (parts := _NAME.fullmatch(filename)):
        file, digest = _find(parts[1] + parts[3]), parts[2]
    if file is None:
        abort(404)
    gzip_content = file.gzip_content if request.accept_encodings.quality("gzip") else None
    response = Response(file.content if gzip_content is None else gzip_content, mimetype=file.mimetype)
    if gzip_content is not None:
        response.content_encoding = "gzip"
    if file.gzip_content is not None:
        response.vary.add("Accept-Encoding")
    is_fixed = digest == file.digest or _VENDORS_HASH.fullmatch(filename)
    response.headers["Cache-Control"] = FOR_EVER if is_fixed else "no-cache"
    response.set_etag(file.digest if gzip_content is None else f"{file.digest}-gzip")
    response.make_conditional(request)
    return response


def _find(filename: str) -> StaticFile | None:
    """Return a file of the static folder, as it is now; None without it."""
    if filename in GENERATORS:
        return _generate(filename)
    path = safe_join(str(current_app.static_folder), filename)
    try:
        status = Path(path).stat() if path else None
    except (OSError, ValueError):
        return None
    if path is None or status is None or not S_ISREG(status.st_mode):
        return None
    version = status.st_mtime_ns, status.st_size
    is_script = filename.startswith("js/")
    names = _imported_names(path, *version) if is_script else ()
    imports = tuple(
        _name_with(script.digest, name) if (script := _find(normpath(f"js/{name}"))) else name
        for name in names
    )
    return _read(path, *version, imports, is_script)


@cache
def _generate(filename: str) -> StaticFile:
    return _static_file(filename, GENERATORS[filename]())


@lru_cache(FILES_MAX)
def _imported_names(path: str, _mtime_ns: int, _size: int) -> tuple[str, ...]:
    """Return the names that a script imports, in the order of its text."""
    text = _without_comments(Path(path).read_bytes()).decode()
    return tuple(name for _words, name in _IMPORT.findall(text))


@lru_cache(FILES_MAX)
def _read(path: str, _mtime_ns: int, _size: int, imports: tuple[str, ...], is_script: bool) -> StaticFile:
    """Return a file; ``imports`` are the names for those that it imports, in the order of its text."""
    content = Path(path).read_bytes()
    if is_script:
        content = _without_comments(content)
    if imports:
        names = iter(imports)
        content = _IMPORT.sub(lambda match: f'{match[1]}"{next(names)}"', content.decode()).encode()
    return _static_file(path, content)


def _without_comments(script: bytes) -> bytes:
    return _COMMENT.sub(lambda comment: b"\n" * comment[0].count(b"\n"), script)


def _static_file(name: str, content: bytes) -> StaticFile:
    mimetype = guess_type(name)[0] or "application/octet-stream"
    gzip_content = gzip.compress(content, 9, mtime=0) if PACKED_TYPES.fullmatch(mimetype) else None
    if gzip_content is not None and len(gzip_content) >= len(content):
        gzip_content = None
    return StaticFile(sha256(content).hexdigest()[:HASH_LENGTH], content, gzip_content, mimetype)
