"""Packed chunks."""

import gzip
import tracemalloc

import pytest

from app.domain.archive.packing import pack_lines, unpack_lines, unpack_text

MIB = 1024 * 1024


def test_a_file_that_was_changed_is_not_read_whole() -> None:
    chunk, stored = pack_lines(1, ["one", "", "ünder"])
    assert unpack_lines(chunk, stored) == ["one", "", "ünder"]
    bomb = gzip.compress(bytes(64 * MIB))
    tracemalloc.start()
    for changed in (bomb, stored[:-1], stored + b"x", b"", gzip.compress(b"one\n\n")):
        for unpack in (unpack_lines, unpack_text):
            with pytest.raises(ValueError, match=chunk.name):
                unpack(chunk, changed)
    assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    tracemalloc.stop()
