"""Transcripts: what was said in each session, written as it is said, and how it is read, listed and searched.

Promise: one append-only file of JSON lines a session; what is said reaches it redacted and stays; whatever becomes of a
file's bytes, all records that are whole can be read. The list and the index of words are derived and can be deleted.
Not here: sessions themselves, their tools, and who may ask for what (sessions). `transcript.searching` is imported by
whoever searches, because it brings SQLite along.
"""

from __future__ import annotations

from anima.sessions.lines import (
    ROLES,
    VERSION,
    Boundary,
    Close,
    Flush,
    Forgotten,
    Header,
    Other,
    Record,
    Redact,
    Role,
    State,
    Turn,
    encode,
    mended,
    parse,
    stamp,
    time_of,
)
from anima.sessions.listing import Listed, Rows, SessionList
from anima.sessions.record import Transcript, forget, kept, touched, transcripts_in, unchanged
from anima.sessions.replay import START, Count, Damage, Page, Placed, Resumed, check, entry_at, header_of, read, scan

__all__ = [
    "ROLES",
    "START",
    "VERSION",
    "Boundary",
    "Close",
    "Count",
    "Damage",
    "Flush",
    "Forgotten",
    "Header",
    "Listed",
    "Other",
    "Page",
    "Placed",
    "Record",
    "Redact",
    "Resumed",
    "Role",
    "Rows",
    "SessionList",
    "State",
    "Transcript",
    "Turn",
    "check",
    "encode",
    "entry_at",
    "forget",
    "header_of",
    "kept",
    "mended",
    "parse",
    "read",
    "scan",
    "stamp",
    "time_of",
    "touched",
    "transcripts_in",
    "unchanged",
]
