"""Names that other systems use for what a home does, so that a program written for one of them finds its verbs.

Promise: each is one call of a verb of `Home`, as the owner, and does nothing else; a name that could not keep its promise
here is missing rather than half true. Not here: their layouts (layout.dialects), their databases and layers (store).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from anima.backup.import_ import Imported
from anima.errors import BadArguments
from anima.home import Home
from anima.home.verbs import look_at_arguments, looking
from anima.model import DocPath, Receipt, Scope
from anima.prompt import Prompt
from anima.search import units
from anima.search.rank import Fusion, Legs, SearchAnswer
from anima.search.units import Chunk as Chunk
from anima.search.units import ChunkConfig as ChunkConfig
from anima.store.overlay import overlay


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


@looking
def search_with_config(home: Home, query: str, config: SearchConfig, *, scope: Scope | str) -> SearchAnswer:
    """`home.search`, as the configuration says."""
    return home.search(
        query, scope=scope, limit=config.limit, min_score=config.min_score, legs=config.legs, fusion=config.fusion
    )


@looking
def new_with_db(user_id: str, db: str) -> Home:
    """IronClaw's workspace of one user in a database: the home of the tenant of that name, or of the agent of that name in
    one file, made if it has none."""
    in_file = db.startswith(("file:", "sqlite:"))
    return Home.open(db, tenant=None if in_file else user_id, agent=user_id if in_file else None, create=True)


append_memory, append_daily_log, today_log = Home.remember, Home.note, Home.today
backfill_embeddings, seed_if_empty, chunk_document = Home.backfill, Home.seed, looking(units.chunk_document)


@looking
def import_from_directory(home: Home, folder: str | Path) -> Imported:
    """`home.import_directory`."""
    return home.import_directory(folder, mine=True)


@looking
def system_prompt_for_context(home: Home, *, is_group_chat: bool) -> Prompt:
    """`home.prompt`."""
    return home.prompt(scope=Scope.GROUP if is_group_chat else Scope.MAIN)


class WorkspaceManager:
    """AgentScope's accessor of a workspace: the home in it, or two layers (`anima.overlay`) with the workspace below and a
    filesystem above, a folder or a database; `whose` says in whose name, as `isolation="user", user="ana"`."""

    def __init__(self, workspace: str | Path, filesystem: str | Path | None = None, **whose: str) -> None:
        layers = overlay(filesystem, workspace, **whose) if filesystem is not None else None  # type: ignore[arg-type]
        self.home = Home.open(layers or workspace, create=layers is not None)

    def close(self) -> None:
        """`home.close`."""
        self.home.close()

    def validate(self) -> tuple[str, ...]:
        """What is missing; nothing of it keeps the home from working."""
        return () if self.home.exists("AGENTS.md") else ("AGENTS.md",)

    def read_agents_md(self) -> str:
        """The text of AGENTS.md; empty where there is none."""
        return self.read_managed_workspace_file_utf8("AGENTS.md")

    def read_memory_md(self) -> str:
        """The text of MEMORY.md."""
        return self.read_managed_workspace_file_utf8("MEMORY.md")

    def read_knowledge_md(self) -> str:
        """The text of knowledge/KNOWLEDGE.md."""
        return self.read_managed_workspace_file_utf8("knowledge/KNOWLEDGE.md")

    def read_managed_workspace_file_utf8(self, rel: str) -> str:
        """The text of any document; empty where there is none. Raises BadPath for a path that leads out of the home."""
        return self.home.site.text_of(DocPath.parse(rel)) or ""

    def list_knowledge_files(self) -> tuple[str, ...]:
        """Every file beneath knowledge/."""
        return self._beneath("knowledge")

    def list_memory_file_paths(self) -> tuple[str, ...]:
        """Every file beneath memory/."""
        return self._beneath("memory")

    def list_session_log_files(self) -> tuple[str, ...]:
        """Every transcript of this home's own; those of a template are other people's words."""
        talks = self.home.sessions.folder
        return tuple(talks.path_of(id) for id in sorted(talks.versions()))

    def append_utf8_workspace_relative(self, rel: str, content: str) -> Receipt:
        """`home.append`."""
        return self.home.append(rel, content)

    def update_session_index(self, agent_id: str, session_id: str, summary: str) -> None:
        """`home.sessions.set_summary`. Raises BadArguments for another agent than the one whose home is open."""
        if agent_id != self.home.agent:
            raise BadArguments(f"the home is open as the agent {self.home.agent!r}, not {agent_id!r}")
        self.home.sessions.set_summary(session_id, summary)

    def _beneath(self, folder: str) -> tuple[str, ...]:
        documents = self.home.site.store.documents
        is_there = documents.actual(DocPath.parse(folder)) is not None
        return tuple(entry.path for entry in documents.list_all(folder)) if is_there else ()


look_at_arguments(SearchConfig)
look_at_arguments(WorkspaceManager, "__init__")
