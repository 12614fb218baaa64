"""Health: sentences about the home, each with what to do; its snapshots; and who may come in.

Promise: it looks when it is asked to and changes nothing by itself.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from anima.backup.snapshot import OWN
from anima.dream.when import following
from anima.errors import HomeError
from anima.web.pages import Page, View
from anima.web.served import Served

MANY = 20  # snapshots that are listed
_SIGNS = {"damage": ("✗", "Damage"), "advice": ("!", "Advice"), "fine": ("✓", "Fine")}


def show(here: Served, request: Request) -> dict[str, Any]:
    home = here.home
    remarks = [{"remark": r, "sign": _SIGNS[r.level][0], "word": _SIGNS[r.level][1]} for r in here.remarks()]
    return {
        "remarks": remarks,
        "ledger": _ledger(here),
        "tokens": here.keyring.all(),
        "root": home.root,
        "dialect": home.dialect,
        "listeners": here.bulletin.listeners,
        **_snapshots(here),
    }


def _snapshots(here: Served) -> dict[str, Any]:
    """Those that are kept, by name alone: an archive holds the home's key, so none is given out here."""
    asked = here.home.config.snapshot
    given: dict[str, Any] = {
        "snapshots": [],
        "snapshots_more": 0,
        "snapshots_wrong": "",
        "snapshot_next": None,
        "snapshot_place": asked.dir or OWN,
    }
    try:
        found = here.home.snapshots()
        if asked.at:
            given["snapshot_next"] = following(asked.at, str(here.home.reading.zone() or "UTC"), here.home.clock())
    except HomeError as error:
        return given | {"snapshots_wrong": str(error)}
    rows = [{"of": each, "size": _size(each.size)} for each in found[:MANY]]
    return given | {"snapshots": rows, "snapshots_more": len(found) - len(rows)}


def _size(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1_000:
            return f"{size:.{0 if unit == 'bytes' else 1}f} {unit}"
        size /= 1_000
    return f"{size:,.1f} GB"


def _ledger(here: Served) -> dict[str, Any]:
    try:
        found = here.home.audit()
    except HomeError as error:
        return {"ok": False, "said": str(error)}
    if found.fault:
        return {"ok": False, "said": f"The ledger is not whole at record {found.fault.line}: {found.fault.what}."}
    since = f" A repair began it anew on {found.renewed.time:%Y-%m-%d}." if found.renewed else ""
    return {
        "ok": True,
        "said": f"The ledger is whole: {found.records:,} records, each chained to the one before.{since}",
    }


PAGE = Page(name="health", title="Health", order=80, key="h", views=(View(show=show),))
