"""anima: a home for an AI agent. The files are the soul, not the model weights.

Names are imported when they are first used, so that `import anima` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anima.backup.export import Exported as Exported
    from anima.backup.import_ import Imported as Imported
    from anima.backup.restore import Restoration as Restoration
    from anima.backup.snapshot import verify_archive as verify_archive
    from anima.dream.material import Candidate as Candidate
    from anima.dream.sweep import Sweep as Sweep
    from anima.errors import BadArguments as BadArguments
    from anima.errors import BadConfig as BadConfig
    from anima.errors import BadInput as BadInput
    from anima.errors import BadPath as BadPath
    from anima.errors import BadText as BadText
    from anima.errors import Damaged as Damaged
    from anima.errors import HomeBusy as HomeBusy
    from anima.errors import HomeError as HomeError
    from anima.errors import MissingExtra as MissingExtra
    from anima.errors import NewerFormat as NewerFormat
    from anima.errors import NoSuchDocument as NoSuchDocument
    from anima.errors import NoSuchHome as NoSuchHome
    from anima.errors import NoSuchProposal as NoSuchProposal
    from anima.errors import NoSuchRevision as NoSuchRevision
    from anima.errors import NotFound as NotFound
    from anima.errors import Refused as Refused
    from anima.errors import StaleWrite as StaleWrite
    from anima.forget import Forgetting as Forgetting
    from anima.home import Home as Home
    from anima.home.folders import doctor as doctor
    from anima.home.folders import restore as restore
    from anima.memory import Noted as Noted
    from anima.memory import Proposal as Proposal
    from anima.memory.inbox import ForReview as ForReview
    from anima.memory.past import Done as Done
    from anima.memory.past import Why as Why
    from anima.model import Actor as Actor
    from anima.model import DocPath as DocPath
    from anima.model import Document as Document
    from anima.model import Entry as Entry
    from anima.model import Finding as Finding
    from anima.model import Origin as Origin
    from anima.model import Receipt as Receipt
    from anima.model import Remark as Remark
    from anima.model import Runtime as Runtime
    from anima.model import Scope as Scope
    from anima.model import Severity as Severity
    from anima.model import Source as Source
    from anima.prompt import Line as Line
    from anima.prompt import Piece as Piece
    from anima.prompt import Prompt as Prompt
    from anima.search.current import IndexReport as IndexReport
    from anima.search.graph import About as About
    from anima.search.rank import Hit as Hit
    from anima.search.units import Chunk as Chunk
    from anima.search.units import ChunkConfig as ChunkConfig
    from anima.search.units import chunk_document as chunk_document
    from anima.sessions.find import Listed as Listed
    from anima.sessions.replay import Turn as Turn
    from anima.sessions.replay import time_of as time_of
    from anima.sessions.session import Session as Session
    from anima.sessions.tools import Tool as Tool
    from anima.store import Revision as Revision
    from anima.store.outside import Snapshot as Snapshot
    from anima.store.overlay import overlay as overlay
    from anima.text import highlight as highlight
    from anima.text.diff import merge as merge
    from anima.text.diff import unified as unified
    from anima.text.markdown import front_matter_end as front_matter_end
    from anima.text.markdown import lines_of as lines_of
    from anima.text.markdown import sections as sections
    from anima.upkeep.doctor import Health as Health
    from anima.upkeep.upkeep import Figures as Figures
    from anima.upkeep.upkeep import Look as Look
    from anima.upkeep.upkeep import Suggestion as Suggestion

__version__ = "0.1.0"

_HOMES = {
    "anima.backup.import_": "Imported",
    "anima.errors": (
        "BadArguments BadConfig BadInput BadPath BadText Damaged HomeBusy HomeError MissingExtra NewerFormat NoSuchDocument "
        "NoSuchHome NoSuchProposal NoSuchRevision NotFound Refused StaleWrite"
    ),
    "anima.forget": "Forgetting",
    "anima.home.folders": "doctor restore",
    "anima.home": "Home",
    "anima.model": "Actor DocPath Document Entry Finding Origin Receipt Remark Runtime Scope Severity Source",
    "anima.backup.export": "Exported",
    "anima.memory.inbox": "ForReview",
    "anima.memory": "Noted Proposal",
    "anima.memory.past": "Done Why",
    "anima.search.current": "IndexReport",
    "anima.search.graph": "About",
    "anima.search.rank": "Hit",
    "anima.search.units": "Chunk ChunkConfig chunk_document",
    "anima.store": "Revision",
    "anima.prompt": "Line Piece Prompt",
    "anima.backup.restore": "Restoration",
    "anima.backup.snapshot": "verify_archive",
    "anima.sessions.session": "Session",
    "anima.store.overlay": "overlay",
    "anima.store.outside": "Snapshot",
    "anima.text.markdown": "front_matter_end lines_of sections",
    "anima.text.diff": "merge unified",
    "anima.text": "highlight",
    "anima.dream.material": "Candidate",
    "anima.dream.sweep": "Sweep",
    "anima.sessions.find": "Listed",
    "anima.sessions.replay": "Turn time_of",
    "anima.sessions.tools": "Tool",
    "anima.upkeep.upkeep": "Figures Look Suggestion",
    "anima.upkeep.doctor": "Health",
}
_WHERE = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = list(_WHERE | {"__version__": __name__})


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'anima' has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value
