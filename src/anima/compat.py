"""Names that other systems use for what a home does, so that a program written for one of them finds its verbs.

Promise: each is one call of a verb of `Home`, as the owner, and does nothing else; a name that could not keep its promise
here is missing rather than half true. Not here: their layouts (layout.dialects), their databases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from anima.backup.import_ import Imported
from anima.home import Home
from anima.model import Document, Receipt, Scope
from anima.prompt.compose import Prompt
from anima.search.rank import Fusion, Legs, SearchAnswer
from anima.search.units import Chunk, ChunkConfig, chunk_document

__all__ = [
    "Chunk",
    "ChunkConfig",
    "SearchConfig",
    "append_daily_log",
    "append_memory",
    "backfill_embeddings",
    "chunk_document",
    "import_from_directory",
    "new_with_db",
    "search_with_config",
    "seed_if_empty",
    "system_prompt_for_context",
    "today_log",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """How to search, built up by its methods: reciprocal ranks, ten hits and both legs unless they say otherwise."""

    limit: int = 10
    min_score: float = 0.0
    legs: Legs = "both"
    fusion: Fusion = "rrf"

    def with_limit(self, limit: int) -> SearchConfig:
        """So many hits."""
        return replace(self, limit=limit)

    def with_min_score(self, score: float) -> SearchConfig:
        """No weaker hits."""
        return replace(self, min_score=score)

    def fts_only(self) -> SearchConfig:
        """By words alone."""
        return replace(self, legs="words")

    def vector_only(self) -> SearchConfig:
        """By meaning alone."""
        return replace(self, legs="meaning")


def search_with_config(home: Home, query: str, config: SearchConfig, *, scope: Scope | str) -> SearchAnswer:
    """`home.search`, as the configuration says."""
    return home.search(
        query, scope=scope, limit=config.limit, min_score=config.min_score, legs=config.legs, fusion=config.fusion
    )


def new_with_db(user_id: str, db: str) -> Home:
    """IronClaw's workspace of one user in a database: the home of the tenant of that name, or of the agent of that name in
    one file, made if it has none."""
    in_file = db.startswith(("file:", "sqlite:"))
    return Home.open(db, tenant=None if in_file else user_id, agent=user_id if in_file else None, create=True)


def append_memory(home: Home, fact: str) -> Receipt:
    """`home.remember`."""
    return home.remember(fact)


def append_daily_log(home: Home, entry: str) -> Receipt:
    """`home.note`."""
    return home.note(entry)


def today_log(home: Home) -> Document | None:
    """`home.today`."""
    return home.today()


def backfill_embeddings(home: Home) -> int:
    """`home.backfill`."""
    return home.backfill()


def seed_if_empty(home: Home) -> tuple[str, ...]:
    """`home.seed`."""
    return home.seed()


def import_from_directory(home: Home, folder: str | Path) -> Imported:
    """`home.import_directory`."""
    return home.import_directory(folder, mine=True)


def system_prompt_for_context(home: Home, *, is_group_chat: bool) -> Prompt:
    """`home.prompt`."""
    return home.prompt(scope=Scope.GROUP if is_group_chat else Scope.MAIN)
