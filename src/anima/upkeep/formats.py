"""Every format that is written, with its number, in one table; and the rule for one that is newer.

Promise: whatever an earlier version wrote is read; a number that is greater than ours raises NewerFormat before anything
is touched, because a file that means more than we know could show an untrusted line as a trusted one; what is derived
is made anew instead. The numbers themselves stand in the modules that write the files (`constant`); a test compares.
A file without a number has format 1. Not here: bringing a home up to date (migrating).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One kind of file. `derived` ones are made anew; the others are refused when they are newer."""

    name: str
    file: str
    number: int
    constant: str  # module:NAME
    derived: bool = False


FORMATS: tuple[Format, ...] = (
    Format(name="home", file=".anima/ledger.jsonl, .anima/format", number=2, constant="anima.ledger.chain:FORMAT"),
    Format(name="transcript", file="sessions/<id>.jsonl", number=1, constant="anima.sessions.lines:VERSION"),
    Format(name="forgotten", file=".anima/forgotten", number=1, constant="anima.memory.forgotten:FORMAT"),
    Format(name="proposal", file=".anima/pending/<id>.json", number=1, constant="anima.memory.inbox:FORMAT"),
    Format(
        name="tokens", file="serve/…/passes.json, in your configuration", number=1, constant="anima.web.tokens:FORMAT"
    ),
    Format(name="register", file="homes.json, in your configuration", number=1, constant="anima.layout.trust:FORMAT"),
    Format(name="export", file="lines of JSON", number=1, constant="anima.backup.lines:FORMAT"),
    Format(name="export-map", file=".anima-export.json in an export", number=1, constant="anima.backup.export:FORMAT"),
    Format(name="snapshot", file="manifest.json in a snapshot", number=1, constant="anima.store.archive:FORMAT"),
    Format(
        name="session-list",
        file="sessions/sessions.json",
        number=1,
        constant="anima.sessions.listing:_VERSION",
        derived=True,
    ),
    Format(name="index", file=".anima/index.sqlite", number=2, constant="anima.search.tables:FORMAT", derived=True),
    Format(name="talks", file=".anima/talks.sqlite", number=1, constant="anima.sessions.talks:FORMAT", derived=True),
)
