"""Claude Code: a plugin in its folder of skills, which it loads by itself. None of the person's own files is touched."""

from __future__ import annotations

from pathlib import Path

from anima.connect.bundle import bundle
from anima.connect.change import HostEdit
from anima.connect.host import Host, folder_of
from anima.connect.wiring import NAME, Wiring


def _folder(wiring: Wiring) -> Path:
    return wiring.folder("CLAUDE_CONFIG_DIR", ".claude")


def _edits(wiring: Wiring) -> list[HostEdit]:
    return folder_of(_folder(wiring) / "skills" / NAME, bundle(wiring, "claude-code"))


HOST = Host(
    name="claude-code",
    title="Claude Code",
    edits=_edits,
    transcripts=lambda wiring: _folder(wiring) / "projects",
    then="Start a new session of claude; /plugin lists anima.",
)
