"""nanobot: the server among the tools of its `config.json`."""

from __future__ import annotations

from anima.connect.change import HostEdit
from anima.connect.host import Host, member
from anima.connect.wiring import NAME, Wiring


def _edits(wiring: Wiring) -> list[HostEdit]:
    file = wiring.folder("NANOBOT_HOME", ".nanobot") / "config.json"
    return [member(file, "tools", "mcpServers", NAME, value=wiring.server("nanobot", joins=False))]


HOST = Host(name="nanobot", title="nanobot", edits=_edits, then="Start nanobot anew.", reports=False)
