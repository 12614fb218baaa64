"""What the five systems promised and we did not keep, a test for each: through public names, over real homes.

The names of the tests follow the list of gaps; what differs on purpose stands in docs/dialects.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import anima
from anima import BadArguments, ChunkConfig, Home, Scope, chunk_document, compat
from anima.cli import run
from anima.model import Purpose
from anima.search.embed import endpoint_for
from anima.search.embed.client import EmbedderDown
from anima.testing.embedder import MockEmbedder

Clock = Callable[[], datetime]
Example = Callable[[str], Path]


class Own(MockEmbedder):
    """An embedder of the caller's own, which can be away."""

    def __init__(self) -> None:
        super().__init__(32)
        self.asked, self.away = 0, False

    @property
    def name(self) -> str:
        return "my-own:32"

    def embed(self, texts: Sequence[str], *, kind: Purpose) -> NDArray[np.float32]:
        if self.away:
            raise EmbedderDown(self.name, "it is away")
        self.asked += len(texts)
        return super().embed(texts, kind=kind)


# -- IronClaw ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "host"), [("ollama", "localhost:11434"), ("near", "cloud-api.near.ai")])
def test_embedder_ollama_or_near_without_a_url_never_sends_to_openai(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, name: str, host: str
) -> None:
    env = {"OPENAI_API_KEY": "sk-not-for-them", "NEAR_EMBEDDING_API_KEY": "near-key"}
    for variable, key in env.items():
        monkeypatch.setenv(variable, key)
    endpoint = endpoint_for(name, url="", model="", env=env)
    assert host in endpoint.url and endpoint.api_key != "sk-not-for-them"

    with Home.create(tmp_path / "h", clock=clock, settings={"index.embedder": name}) as home:
        assert home.index.embedder is not None and name in home.index.embedder.name


def test_rrf_with_words_alone_reaches_one(tmp_path: Path, clock: Clock) -> None:
    with Home.create(tmp_path / "h", clock=clock) as home:
        home.remember("The deployment process runs on Fly.io")
        found = home.search("deployment process", scope=Scope.MAIN, fusion="rrf", legs="words", min_score=0.5)
        config = compat.SearchConfig().with_limit(20).with_min_score(0.5).fts_only()
        same = compat.search_with_config(home, "deployment process", config, scope=Scope.MAIN)

    assert found.hits and found[0].score == 1.0
    assert [hit.citation for hit in same] == [hit.citation for hit in found]


def test_home_open_takes_an_embedder_of_the_callers_own(tmp_path: Path, clock: Clock) -> None:
    own = Own()
    with Home.create(tmp_path / "h", clock=clock, embedder=own) as home:
        home.remember("Alice prefers async communication")
        hit = home.search("async communication", scope=Scope.MAIN)[0]

    assert own.asked > 0 and hit.provider == "my-own:32" and hit.is_hybrid


def test_backfill_is_a_verb_and_the_note_after_an_outage_names_what_helps(
    tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    own = Own()
    own.away = True
    with Home.create(tmp_path / "h", clock=clock, embedder=own) as home:
        home.remember("Alice prefers async communication")
        notes = " ".join(home.search("async", scope=Scope.MAIN, legs="words").notes)
        own.away = False
        report = home.index()
        assert report.embedded == 0 and "anima index --backfill" in notes  # a plain look does not make them
        assert home.backfill() > 0 and home.backfill() == 0
        assert home.search("async", scope=Scope.MAIN)[0].is_hybrid
    assert run(["index", "--backfill", "--home", str(tmp_path / "h")]) == 0
    assert "missing vectors made" in capsys.readouterr().out


def test_backfill_after_enabling_a_provider_counts_what_it_made(tmp_path: Path, clock: Clock) -> None:
    with Home.create(tmp_path / "h", clock=clock, settings={"index.embedder": "none"}) as home:
        home.remember("Alice prefers async communication")
        home.index()
    with Home.open(tmp_path / "h", clock=clock, embedder=Own()) as home:
        assert compat.backfill_embeddings(home) > 0


def test_chunk_document_is_exported_and_overlaps_inside_one_long_line() -> None:
    text = "".join(f"word{n:04d} " for n in range(300))
    chunks = chunk_document(text, ChunkConfig(chunk_size=1000, chunk_overlap=200))

    assert {"Chunk", "ChunkConfig", "chunk_document"} <= set(anima.__all__)
    assert all(len(chunk.text) <= 1000 and (chunk.start_line, chunk.end_line) == (1, 1) for chunk in chunks)
    for one, other in pairwise(chunks):
        assert other.text.startswith(one.text[-200:])
    assert chunks[0].text + "".join(chunk.text[200:] for chunk in chunks[1:]) == text


def test_chunks_before_one_endless_line_do_not_crawl() -> None:
    text = "\n".join(["tiny"] * 40) + "\n" + "x" * 5_000
    chunks = chunk_document(text, ChunkConfig(chunk_size=1000, chunk_overlap=200))

    assert len(chunks) <= 9 and chunks[-1].end_line == 41


def test_names_of_ironclaw_are_in_anima_compat(tmp_path: Path, clock: Clock) -> None:
    with Home.create(tmp_path / "h", clock=clock) as home:
        assert compat.today_log(home) is None
        assert compat.append_memory(home, "User prefers TypeScript for web projects").status == "written"
        assert compat.append_daily_log(home, "Reviewed PR #42, approved").status == "written"
        today = compat.today_log(home)
        assert today is not None and "Reviewed PR #42" in today.text
        assert "TypeScript" in compat.system_prompt_for_context(home, is_group_chat=False).text
        assert "TypeScript" not in compat.system_prompt_for_context(home, is_group_chat=True).text
        assert compat.seed_if_empty(home) == ()
        templates = tmp_path / "templates"
        templates.mkdir()
        (templates / "runbook.md").write_text("# Runbook\n", encoding="utf-8")
        compat.import_from_directory(home, templates)
        assert home.exists("runbook.md")
    with pytest.raises(BadArguments):
        compat.chunk_document("x", compat.ChunkConfig(chunk_size=10, chunk_overlap=10))
