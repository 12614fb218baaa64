"""Gemini CLI: an extension in its folder of extensions. None of the person's own files is touched."""

from __future__ import annotations

from pathlib import Path

from anima.connect.bundle import extension
from anima.connect.change import HostEdit
from anima.connect.host import Host, folder_of
from anima.connect.wiring import NAME, Wiring


def _folder(wiring: Wiring) -> Path:
    return wiring.folder("GEMINI_CLI_HOME") / ".gemini"


def _edits(wiring: Wiring) -> list[HostEdit]:
    return folder_of(_folder(wiring) / "extensions" / NAME, extension(wiring))


HOST = Host(
    name="gemini",
    title="Gemini CLI",
    edits=_edits,
    transcripts=lambda wiring: _folder(wiring) / "tmp",
    then="Start a new session of gemini; /extensions list shows anima.",
)
