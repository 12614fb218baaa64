"""Any other program: a bundle in every format there is, to point it at, and hooks that speak plainly."""

from __future__ import annotations

from anima.connect.bundle import bundle
from anima.connect.change import HostEdit
from anima.connect.host import Host, folder_of
from anima.connect.wiring import Wiring


def _edits(wiring: Wiring) -> list[HostEdit]:
    return folder_of(wiring.bundle, bundle(wiring, "generic"))


HOST = Host(
    name="generic",
    title="another program",
    edits=_edits,
    then="Point your program at {bundle}: plugin.json and mcp.json there are Agent Plugins 1.0.0.",
)
