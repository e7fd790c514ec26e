"""Log reader: reads a job log from a given line, without scanning the lines before it again.

Lines end in LF and count from 1; only whole lines are returned. A client that follows a growing log requests
the line after the last one it received, so its byte offset is cached for recently read logs.
"""

import json
import os
import sys
import threading
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from executor_client.logs.files import log_file, open_file
from executor_client.wire.protocol import MSG_LOG_NOT_EXISTS, MSG_LOG_NOT_FOUND, LogRequest, LogResult

#: bytes of JSON text in a page, for consoles that read page by page: twice this (``content`` and ``data``)
#: plus the envelope stays below 512 KiB
PAGE_MAX_BYTES = 254 * 1024
#: largest answer for XXL-JOB's console, which requests the log of a finished run only once
WHOLE_MAX_BYTES = 8 * 1024 * 1024
#: number of logs with a cached position
CACHED_POSITIONS_MAX = 512

_CHUNK = 64 * 1024
_CUT_MARK = " …[line cut]"


@dataclass(frozen=True, slots=True)
class _Position:
    """Line ``line`` of the file ``inode`` starts at byte ``offset``."""

    inode: int
    line: int
    offset: int


_FIRST_LINE = 1


class LogReader:
    """Log reader of an executor, for ``/log``. Thread-safe."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._positions: OrderedDict[Path, _Position] = OrderedDict()

    def read(self, request: LogRequest, *, max_bytes: int = PAGE_MAX_BYTES) -> LogResult:
        """Return as many lines from ``from_line_num`` on as fit into ``max_bytes`` of JSON."""
        return self._read(request, 0, max_bytes)

    def read_end(self, request: LogRequest, count: int, *, max_bytes: int = PAGE_MAX_BYTES) -> LogResult:
        """Return the last ``count`` lines, or as many as fit; the last line's number is that of all lines."""
        return self._read(request, count, max_bytes)

    def _read(self, request: LogRequest, last_count: int, max_bytes: int) -> LogResult:
        try:
            path = log_file(self._root, request.log_id, request.log_date_time)
        except ValueError:
            return LogResult(request.from_line_num, 0, MSG_LOG_NOT_FOUND, is_end=True)
        try:
            descriptor = open_file(path, os.O_RDONLY)
        except OSError:
            return LogResult(request.from_line_num, 0, MSG_LOG_NOT_EXISTS, is_end=True)
        try:
            if last_count:
                return self._read_end(descriptor, path, last_count, max_bytes)
            return self._read_open(descriptor, path, request.from_line_num, max_bytes)
        finally:
            os.close(descriptor)

    def _read_open(self, descriptor: int, path: Path, from_line: int, max_bytes: int) -> LogResult:
        start = self._start(path, os.fstat(descriptor))
        target = max(from_line, _FIRST_LINE)
        if start.line > target:
            start = _Position(start.inode, _FIRST_LINE, 0)
        first = _skip_lines(descriptor, start, target)
        if first.line < target:
            self._cache_position(path, first)
            return LogResult(from_line, first.line - 1, "", is_end=False)
        text, end = _take_lines(descriptor, first, max_bytes)
        self._cache_position(path, end)
        return LogResult(from_line, end.line - 1, text, is_end=False)

    def _read_end(self, descriptor: int, path: Path, count: int, max_bytes: int) -> LogResult:
        after = _skip_lines(descriptor, self._start(path, os.fstat(descriptor)), sys.maxsize)
        first, text = _last_lines(descriptor, after, count, max_bytes)
        self._cache_position(path, after)
        return LogResult(first, after.line - 1, text, is_end=False)

    def _start(self, path: Path, status: os.stat_result) -> _Position:
        """Return the cached position if it is still valid for this file, else the first line."""
        with self._lock:
            position = self._positions.get(path)
        if position is not None and position.inode == status.st_ino and position.offset <= status.st_size:
            return position
        return _Position(status.st_ino, _FIRST_LINE, 0)

    def _cache_position(self, path: Path, position: _Position) -> None:
        with self._lock:
            self._positions[path] = position
            self._positions.move_to_end(path)
            while len(self._positions) > CACHED_POSITIONS_MAX:
                self._positions.popitem(last=False)


def _skip_lines(descriptor: int, start: _Position, target: int) -> _Position:
    """Return the start of line ``target``, or of the line after the last whole one."""
    line, offset, position = start.line, start.offset, start.offset
    while line < target:
        chunk = os.pread(descriptor, _CHUNK, position)
        if not chunk:
            break
        newlines = chunk.count(b"\n")
        if line + newlines < target:
            line += newlines
            offset = position + chunk.rfind(b"\n") + 1 if newlines else offset
        else:
            newline_at = -1
            for _ in range(target - line):
                newline_at = chunk.index(b"\n", newline_at + 1)
            line, offset = target, position + newline_at + 1
        position += len(chunk)
    return _Position(start.inode, line, offset)


def _last_lines(descriptor: int, after: _Position, count: int, max_bytes: int) -> tuple[int, str]:
    """Return the lines before a position, at most ``count``, and the number of the first of them."""
    begin = max(0, after.offset - max_bytes)
    data = os.pread(descriptor, after.offset - begin, begin)
    lines = data.split(b"\n")[:-1]
    if begin and len(lines) > 1:  # the first one may be only the end of its line
        lines = lines[1:]
    texts: list[str] = []
    for line in reversed(lines[-count:]):
        text = line.decode("utf-8", "replace") + "\n"
        size = _json_size(text)
        if size > max_bytes:
            if not texts:  # one character takes at most six bytes of JSON
                texts.append(f"{text[: max_bytes // 6]}{_CUT_MARK}\n")
            break
        max_bytes -= size
        texts.append(text)
    return after.line - len(texts), "".join(reversed(texts))


def _take_lines(descriptor: int, first: _Position, max_bytes: int) -> tuple[str, _Position]:
    """Return whole lines from ``first`` on and the position after them; an overlong first line is cut."""
    data = os.pread(descriptor, max_bytes + 1, first.offset)
    end = data.rfind(b"\n") + 1
    if not end:
        if len(data) <= max_bytes:
            return "", first
        return _cut_line(descriptor, first, data, max_bytes)
    lines = data[:end].split(b"\n")[:-1]
    texts, size, length = [], 0, 0
    for line in lines:
        text = line.decode("utf-8", "replace") + "\n"
        size += _json_size(text)
        if size > max_bytes:
            break
        texts.append(text)
        length += len(line) + 1
    if not texts:
        return _cut_line(descriptor, first, lines[0], max_bytes)
    return "".join(texts), _Position(first.inode, first.line + len(texts), first.offset + length)


def _cut_line(descriptor: int, first: _Position, data: bytes, max_bytes: int) -> tuple[str, _Position]:
    """Return the start of an overlong line, as much as fits, and the position after the whole line."""
    next_line = _skip_lines(descriptor, first, first.line + 1)
    if next_line.line == first.line:
        return "", first
    text = data.decode("utf-8", "replace")
    budget = max_bytes - _json_size(f"{_CUT_MARK}\n")
    fitting = bisect_right(range(1, len(text) + 1), budget, key=lambda length: _json_size(text[:length]))
    return f"{text[:fitting]}{_CUT_MARK}\n", next_line


def _json_size(text: str) -> int:
    """Return the size of a text inside a JSON string, in bytes."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")) - 2
