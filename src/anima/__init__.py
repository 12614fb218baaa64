"""anima: a home for an AI agent. The files are the soul, not the model weights.

Names are imported when they are first used, so that `import anima` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anima.backup.export import Exported
    from anima.backup.import_ import Imported
    from anima.backup.restore import Restoration
    from anima.backup.snapshot import verify_archive
    from anima.dream.material import Candidate
    from anima.dream.sweep import Sweep
    from anima.errors import (
        BadArguments,
        BadConfig,
        BadInput,
        BadPath,
        BadText,
        Damaged,
        HomeBusy,
        HomeError,
        MissingExtra,
        NewerFormat,
        NoSuchDocument,
        NoSuchHome,
        NoSuchProposal,
        NoSuchRevision,
        NotFound,
        Refused,
        StaleWrite,
    )
    from anima.folders import doctor, restore
    from anima.forget.forget import Forgetting
    from anima.home import Home
    from anima.ledger.provenance import Source
    from anima.memory.inbox import ForReview
    from anima.memory.past import Done, Why
    from anima.memory.proposals import Proposal
    from anima.memory.unreviewed import Noted
    from anima.model import Actor, DocPath, Document, Entry, Finding, Origin, Receipt, Remark, Runtime, Scope, Severity
    from anima.prompt.compose import Line, Piece, Prompt
    from anima.search.current import IndexReport
    from anima.search.graph import About
    from anima.search.rank import Hit
    from anima.search.units import Chunk, ChunkConfig, chunk_document
    from anima.sessions.find import Listed
    from anima.sessions.replay import Turn, time_of
    from anima.sessions.session import Session
    from anima.sessions.tools import Tool
    from anima.store.git import Revision
    from anima.store.shelf import Snapshot
    from anima.text.diff import merge, unified
    from anima.text.markdown import front_matter_end, lines_of, sections
    from anima.text.words import highlight
    from anima.upkeep.doctor import Health
    from anima.upkeep.numbers import Figures
    from anima.upkeep.tidy import Look, Suggestion

__version__ = "0.1.0"

_HOMES = {
    "anima.backup.import_": "Imported",
    "anima.errors": (
        "BadArguments BadConfig BadInput BadPath BadText Damaged HomeBusy HomeError MissingExtra NewerFormat NoSuchDocument "
        "NoSuchHome NoSuchProposal NoSuchRevision NotFound Refused StaleWrite"
    ),
    "anima.forget.forget": "Forgetting",
    "anima.folders": "doctor restore",
    "anima.home": "Home",
    "anima.model": "Actor DocPath Document Entry Finding Origin Receipt Remark Runtime Scope Severity",
    "anima.backup.export": "Exported",
    "anima.memory.inbox": "ForReview",
    "anima.memory.proposals": "Proposal",
    "anima.memory.unreviewed": "Noted",
    "anima.memory.past": "Done Why",
    "anima.ledger.provenance": "Source",
    "anima.search.current": "IndexReport",
    "anima.search.graph": "About",
    "anima.search.rank": "Hit",
    "anima.search.units": "Chunk ChunkConfig chunk_document",
    "anima.store.git": "Revision",
    "anima.prompt.compose": "Line Piece Prompt",
    "anima.backup.restore": "Restoration",
    "anima.backup.snapshot": "verify_archive",
    "anima.sessions.session": "Session",
    "anima.store.shelf": "Snapshot",
    "anima.text.markdown": "front_matter_end lines_of sections",
    "anima.text.diff": "merge unified",
    "anima.text.words": "highlight",
    "anima.dream.material": "Candidate",
    "anima.dream.sweep": "Sweep",
    "anima.sessions.find": "Listed",
    "anima.sessions.replay": "Turn time_of",
    "anima.sessions.tools": "Tool",
    "anima.upkeep.numbers": "Figures",
    "anima.upkeep.doctor": "Health",
    "anima.upkeep.tidy": "Look Suggestion",
}
_WHERE = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "About",
    "Actor",
    "BadArguments",
    "BadConfig",
    "BadInput",
    "BadPath",
    "BadText",
    "Candidate",
    "Chunk",
    "ChunkConfig",
    "Damaged",
    "DocPath",
    "Document",
    "Done",
    "Entry",
    "Exported",
    "Figures",
    "Finding",
    "ForReview",
    "Forgetting",
    "Health",
    "Hit",
    "Home",
    "HomeBusy",
    "HomeError",
    "Imported",
    "IndexReport",
    "Line",
    "Listed",
    "Look",
    "MissingExtra",
    "NewerFormat",
    "NoSuchDocument",
    "NoSuchHome",
    "NoSuchProposal",
    "NoSuchRevision",
    "NotFound",
    "Noted",
    "Origin",
    "Piece",
    "Prompt",
    "Proposal",
    "Receipt",
    "Refused",
    "Remark",
    "Restoration",
    "Revision",
    "Runtime",
    "Scope",
    "Session",
    "Severity",
    "Snapshot",
    "Source",
    "StaleWrite",
    "Suggestion",
    "Sweep",
    "Tool",
    "Turn",
    "Why",
    "__version__",
    "chunk_document",
    "doctor",
    "front_matter_end",
    "highlight",
    "lines_of",
    "merge",
    "restore",
    "sections",
    "time_of",
    "unified",
    "verify_archive",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'anima' has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value
