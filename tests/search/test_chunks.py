"""Plain chunks: a size, an overlap, exact lines, nothing lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.errors import BadArguments
from anima.search.units import ChunkConfig, chunk_document

words = st.sampled_from(["tea", "# Title", "- item", "  more", "```", "", "x" * 400, "私は。"])
documents = st.lists(words, max_size=30).map("\n".join)


def test_plain_chunks_have_a_size_an_overlap_and_lines() -> None:
    text = "\n".join(f"line {n:03d} of a document" for n in range(200))
    chunks = chunk_document(text, ChunkConfig(chunk_size=1000, chunk_overlap=200))

    assert all(len(chunk.text) <= 1000 for chunk in chunks)
    assert chunks[0].start_line == 1 and chunks[-1].end_line == 200
    for one, other in pairwise(chunks):
        assert one.start_line < other.start_line <= one.end_line + 1
        assert 0 <= (one.end_line - other.start_line + 1) * 24 <= 200
    assert text.split("\n")[chunks[1].start_line - 1] == chunks[1].text.split("\n")[0]


def test_a_line_longer_than_a_chunk_is_cut() -> None:
    chunks = chunk_document("x" * 2500, ChunkConfig(chunk_size=1000, chunk_overlap=0))

    assert [len(chunk.text) for chunk in chunks] == [1000, 1000, 500]


@given(documents, st.integers(1, 50), st.integers(0, 49))
def test_chunks_lose_no_line(text: str, size: int, overlap: int) -> None:
    if overlap >= size:
        with pytest.raises(BadArguments):
            chunk_document(text, ChunkConfig(chunk_size=size, chunk_overlap=overlap))
        return
    chunks = chunk_document(text, ChunkConfig(chunk_size=size, chunk_overlap=overlap))
    covered = {line for chunk in chunks for line in range(chunk.start_line, chunk.end_line + 1)}
    assert all(not line.strip() or number in covered for number, line in enumerate(text.split("\n"), 1))
