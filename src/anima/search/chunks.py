"""Plain chunks of a document, for programs that cut texts by size. Ours are units (units).

Promise: no line that says something is lost, no chunk is longer than asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anima.errors import BadArguments


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkConfig:
    """Plain chunking by characters, as the seeds have it."""

    size: int = 1000
    overlap: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A plain chunk: whole lines where they fit, parts of a line where one line is longer than a chunk."""

    start_line: int
    end_line: int
    text: str


def chunk_document(text: str, config: ChunkConfig | None = None) -> list[Chunk]:
    """Chunks of about `size` characters along lines, each beginning with about `overlap` of the one before."""
    config = config or ChunkConfig()
    if config.size < 1 or not 0 <= config.overlap < config.size:
        raise BadArguments("a chunk has a size of at least 1 and an overlap smaller than its size")
    parts = list(_line_parts(text.split("\n"), config.size))
    chunks: list[Chunk] = []
    first = 0
    while first < len(parts):
        last, size = first, 0
        while last < len(parts) and (last == first or size + len(parts[last][1]) + 1 <= config.size):
            size += len(parts[last][1]) + 1
            last += 1
        chosen = parts[first:last]
        if any(part.strip() for _, part in chosen):
            chunks.append(Chunk(start_line=chosen[0][0], end_line=chosen[-1][0], text="\n".join(p for _, p in chosen)))
        if last == len(parts):
            break
        first = _overlapping(parts, first, last, config.overlap)
    return chunks


def _line_parts(lines: list[str], size: int) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, 1):
        for start in range(0, max(len(line), 1), size):
            yield number, line[start : start + size]


def _overlapping(parts: list[tuple[int, str]], first: int, last: int, overlap: int) -> int:
    """Where the next chunk begins: whole parts worth at most `overlap`, and always further than this one began."""
    begin, size = last, 0
    while begin > first + 1 and size + len(parts[begin - 1][1]) + 1 <= overlap:
        begin -= 1
        size += len(parts[begin][1]) + 1
    return begin
