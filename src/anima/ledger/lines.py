"""Lines of something that bytes can be read from: forward, backward, and from any place.

Promise: no more than a block, or one line, is held. Not here: where the bytes stand, and what a line means.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

BLOCK = 1 << 18
MAX_LINE = 32 * 2**20


class Readable(Protocol):
    """Bytes that can be read anywhere."""

    def size(self) -> int: ...

    def read(self, start: int, end: int) -> bytes:
        """The bytes of a range, fewer where there are no more."""


def blocks(file: Readable, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """(offset, bytes) of runs of whole lines, from a line's start on. Only the last can lack its newline, and a piece
    of a line that is longer than MAX_LINE."""
    stop = file.size() if end is None else end
    at, held, length = start, list[bytes](), 0
    while data := file.read(start, min(start + BLOCK, stop)):
        start += len(data)
        cut = data.rfind(b"\n") + 1
        if cut or length + len(data) > MAX_LINE:
            cut = cut or len(data)
            yield at, b"".join([*held, data[:cut]])
            at, held, length = start - len(data) + cut, [], 0
            data = data[cut:]
        if data:
            held.append(data)
            length += len(data)
    if held:
        yield at, b"".join(held)


def block_before(file: Readable, end: int, size: int = BLOCK) -> tuple[int, bytes]:
    """(offset, bytes) of the run of lines that ends at `end`: about `size` bytes, and at least one line."""
    at, held, length = end, list[bytes](), 0
    while at > 0 and length <= MAX_LINE:
        start = max(0, at - size)
        data = file.read(start, at)
        cut = data.find(b"\n") + 1 if start else 0
        held.append(data[cut:])
        if not start or (cut and (held[:-1] or cut < len(data))):
            return start + cut, b"".join(reversed(held))
        held[-1] = data
        at, length = start, length + len(data)
    return at, b"".join(reversed(held))


def line_at(file: Readable, offset: int) -> bytes:
    """The line that begins at a byte, with its newline if it has one; at most MAX_LINE bytes of it."""
    held, at, want = list[bytes](), offset, 4096
    while data := file.read(at, min(at + want, offset + MAX_LINE)):
        cut = data.find(b"\n") + 1
        held.append(data[:cut] if cut else data)
        if cut:
            break
        at, want = at + len(data), want * 4
    return b"".join(held)


def last_line(file: Readable, end: int) -> tuple[int, bytes]:
    """(offset, bytes) of what stands after the last newline before `end`; of a longer one the last MAX_LINE bytes."""
    at, held, step = end, list[bytes](), 1 << 12
    while at > 0 and end - at < MAX_LINE:
        start = max(0, at - step)
        data = file.read(start, at)
        cut = data.rfind(b"\n") + 1
        held.append(data[cut:])
        at, step = start + cut, min(step * 2, BLOCK)
        if cut:
            break
    return at, b"".join(reversed(held))


def lines_back(file: Readable, end: int) -> Iterator[bytes]:
    """The lines before `end`, which stands after a line break, last one first."""
    step = 1 << 14
    while end > 0:
        end, block = block_before(file, end, step)
        yield from reversed(block[:-1].split(b"\n"))
        step = min(step * 2, BLOCK)
