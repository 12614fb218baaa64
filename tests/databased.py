"""Tests that were written for homes in folders, in PostgreSQL instead: with STORE=postgres every folder that a test makes or
opens as a home stands for a tenant of its own, and what a test reads beneath it by `Path` is what the database holds.

A document or a small thing of the machine's own that a test writes or deletes by `Path` is written or deleted in its row, as
whoever owns a database could. What else is done to files behind a home's back cannot be had there: such tests are named
in `folders_only.txt` with the reason, and are skipped. Whatever else fails, fails. With FOLDERS=run those are run, too, and one
that passes is a failure: its line should go.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from anima.backup import restore
from anima.home import opening
from anima.store import Rules
from anima.store.rows import find_home
from anima.store.rows.store import RowStore
from anima.store.rows.whole import KEY, LEDGER, RowWhole
from anima.store.whole import FolderWhole
from anima.testing import postgres
from anima.upkeep.doctor import Doctor

SEAL = "0123456789abcdef" * 4
HISTORIES = (".git", "history.git")
LIST = Path(__file__).parent / "folders_only.txt"
READING = ("stat", "lstat", "mkdir", "resolve", "iterdir", "glob", "rglob")


class Databased:
    """Where folders of one test stand: the address of each, by its path."""

    def __init__(self, owner: str, application: str) -> None:
        self._owner, self._application = owner, application
        self._places: dict[str, str] = {}
        self._moving = ""  # the folder that is being carried over
        self._given = opening.given_place
        self._shown: dict[str, dict[str, bytes]] = {}  # what stands in a folder because a row says so
        self._states: dict[str, tuple[Any, ...]] = {}  # of the rows, when they were last shown
        self._wholes: dict[str, tuple[RowStore, RowWhole]] = {}
        self._lock, self._showing = threading.RLock(), False

    def __call__(self, path: Any, env: Any) -> Any:
        place = self._given(path, env)
        if isinstance(env, dict):
            env.setdefault("ANIMA_KEY", SEAL)  # a test that gives an environment knows of no database
        name, _, whose = str(place).partition(" ")
        if whose and name.startswith("postgresql:"):
            return f"{self._application}#{whose}"  # what a home is called
        key = os.path.realpath(os.path.expanduser(str(place)))
        if opening.is_address(place) or key == self._moving:
            return place
        if key not in self._places:
            self._places[key] = f"{self._application}#{postgres.new_tenant(self._owner)}"
            if os.path.isdir(key):
                self._move(Path(key), self._places[key])
        return self._places[key]

    def _move(self, folder: Path, address: str) -> None:
        """A folder that is there already, such as an example home, with all that is in it."""
        from anima.home.folders import migrate

        held = _files(folder)
        if not held:
            find_home(address, tenant=None, agent=None, env=os.environ, create=True)
            return
        self._moving = str(folder)
        migrate(folder, address)
        self._moving = ""
        self._shown[str(folder)] = dict.fromkeys(held, b"")

    # -- files of a home in the database ------------------------------------------------------------------------------------

    def there(self, path: Path, *, history: bool = False) -> Path:
        """Where a path is really, once what the database holds of its home stands there."""
        if not self.has(path) or (found := self._home_of(path)) is None:
            return path
        key, inside = found
        with self._lock:
            self._showing = True
            try:
                self._show(key, history=history or any(name in inside for name in HISTORIES))
            finally:
                self._showing = False
        return Path(key, inside)

    def has(self, path: Path) -> bool:
        return self._home_of(path) is not None and not self._showing and not self._moving

    def wrote(self, path: Path, data: bytes | None) -> None:
        """A file was written, or deleted, by a test: so is its row."""
        if not self.has(path) or (found := self._home_of(path)) is None or not found[1]:
            return
        key, inside = found
        if inside in (KEY, LEDGER) or any(name in inside for name in HISTORIES) or (held := self._whole(key)) is None:
            return
        store = held[0]
        with store.lock():
            if data is None:
                store.files.remove(inside)
            else:
                version = None if inside.startswith(".anima/") else store.next_version()
                store.files.put(inside, data, version=version)
        self._shown.setdefault(key, {})[inside] = data or b""
        self._states.pop(key, None)

    def _home_of(self, path: Path) -> tuple[str, str] | None:
        name = str(path)
        if name.startswith("postgresql:/"):
            tenant, _, inside = name.partition(" ")[2].partition("/main")
            key = next((key for key, address in self._places.items() if address.endswith(f"#{tenant}")), None)
            return (key, inside.strip("/")) if key else None
        name = os.path.abspath(name)
        for key in self._places:
            if name == key or name.startswith(f"{key}/"):
                return key, name[len(key) + 1 :]
        return None

    def _whole(self, key: str) -> tuple[RowStore, RowWhole] | None:
        from anima.errors import NoSuchHome

        if key not in self._wholes:
            try:
                place = find_home(self._places[key], tenant=None, agent=None, env=os.environ)
            except NoSuchHome:
                return None
            rules = Rules(clock=lambda: datetime.now(UTC), author="a test", is_closed=lambda path: False)
            store = RowStore(place, rules, shelf="", whole=RowWhole)
            self._wholes[key] = store, RowWhole(store)
        store, whole = self._wholes[key]
        store._epoch = (store.rows.one("select epoch from anima.home where [own]") or (0,))[
            0
        ]  # a home that was restored meanwhile is the home all the same
        return store, whole

    def _show(self, key: str, *, history: bool) -> None:
        if (held := self._whole(key)) is None:
            return
        (store, whole), shown = held, self._shown.setdefault(key, {})
        now = {row.path: row[1:] for row in store.files.beneath("")}
        before, state = self._states.get(key, (None, {}, False)), (store.rows.revision(), now, history)
        if before == state:
            return
        self._states[key] = state
        if not history:
            whole._as_repository = lambda: None  # type: ignore[method-assign]
        found = {each.path: each for each in whole.census()[0]}
        vars(whole).pop("_as_repository", None)
        for path in [path for path in shown if path not in found]:
            if history or not path.startswith(HISTORIES):
                at = Path(key, path)
                at.unlink(missing_ok=True)
                for above in at.parents[: len(Path(path).parents) - 1]:
                    if above.is_dir() and not os.listdir(above):
                        above.rmdir()
                del shown[path]
        for path, each in found.items():
            at = Path(key, path)
            if path in now and before[1].get(path) == now[path] and path in shown and at.is_file():
                continue
            data = whole.read(path) or b""
            if shown.get(path) != data or not at.is_file():
                at.parent.mkdir(parents=True, exist_ok=True)
                at.write_bytes(data)
                shown[path] = data
            at.chmod(each.mode)
            os.utime(at, (each.mtime, each.mtime))


def _files(folder: Path) -> list[str]:
    walked = ((at, name) for at, _, names in os.walk(folder) for name in names)
    return [os.path.relpath(f"{at}/{name}", folder) for at, name in walked]


PLACED = pytest.StashKey[Databased]()
SKIPPED = Counter[str]()  # how many tests, by reason


def move_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has homes of this test stand in the database, or skips it."""
    if (why := reason(request.node.nodeid)) and os.environ.get("FOLDERS") != "run":
        SKIPPED[why] += 1
        pytest.skip(f"folders only: {why}")
    cluster = request.getfixturevalue("cluster")
    monkeypatch.setenv("ANIMA_KEY", SEAL)
    monkeypatch.chdir(request.getfixturevalue("tmp_path_factory").mktemp("here"))
    placed = request.node.stash[PLACED] = Databased(cluster.owner, cluster.application)
    monkeypatch.setattr(opening, "given_place", placed)
    restored = restore.restore

    def restores(archive: Any, path: Any, **more: Any) -> Any:
        return restored(archive, placed(path, {}), **more)

    monkeypatch.setattr(restore, "restore", restores)
    told = Doctor.__init__
    monkeypatch.setattr(
        Doctor,
        "__init__",
        lambda own, path, rooms, world, **more: told(own, placed(path, world.env), rooms, world, **more),
    )
    _look_through(placed, monkeypatch)


def _look_through(placed: Databased, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has `Path` see and write the files of homes that stand in the database."""

    def seen(method: Callable[..., Any], history: bool) -> Callable[..., Any]:
        def asked(path: Path, *given: Any, **more: Any) -> Any:
            real = placed.there(path, history=history)
            found = method(real, *given, **more)
            is_called_otherwise = str(path).startswith("postgresql:") and str(real) != str(path)
            return (
                (path / each.relative_to(real) for each in found)
                if is_called_otherwise and isinstance(found, Iterator)
                else found
            )

        return asked

    for name in READING:
        monkeypatch.setattr(Path, name, seen(getattr(Path, name), name == "rglob"))
    at = FolderWhole.at
    monkeypatch.setattr(FolderWhole, "at", lambda path: at(placed.there(Path(path), history=True)))
    copies = shutil.copytree
    monkeypatch.setattr(
        shutil, "copytree", lambda here, *given, **more: copies(placed.there(Path(here), history=True), *given, **more)
    )
    opens, unlink = Path.open, Path.unlink

    def open_(path: Path, mode: str = "r", *given: Any, **more: Any) -> Any:
        is_ours, real = placed.has(path), placed.there(path)
        if mode.strip("bt") == "r" or not is_ours:
            return opens(real, mode, *given, **more)
        real.parent.mkdir(parents=True, exist_ok=True)  # a folder is there with its first row
        file = opens(real, mode, *given, **more)
        closes = file.close

        def close() -> None:
            is_open, _ = not file.closed, closes()
            if is_open:
                placed.wrote(path, real.read_bytes())

        file.close = close  # type: ignore[method-assign]
        return file

    def unlinks(path: Path, missing_ok: bool = False) -> None:
        unlink(placed.there(path), missing_ok=missing_ok)
        placed.wrote(path, None)

    monkeypatch.setattr(Path, "open", open_)
    monkeypatch.setattr(Path, "unlink", unlinks)


# -- what only a folder has -----------------------------------------------------------------------------------------------------


@cache
def folders_only() -> dict[str, str]:
    """Why a test cannot be had in a database, by its name without and with parameters: lines beneath a reason."""
    found, why = dict[str, str](), ""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            why = line[2:].strip()
        elif line.strip():
            found[line.strip()] = why
    return found


def reason(nodeid: str) -> str | None:
    """The reason for a test, for all parameters of one, or for a whole file."""
    names = (nodeid, nodeid.partition("[")[0], nodeid.partition("::")[0])
    return next((folders_only()[name] for name in names if name in folders_only()), None)


def stays_listed(item: pytest.Item, report: pytest.TestReport) -> None:
    """With FOLDERS=run: one that is listed and passes fails, one that fails as it should is skipped."""
    why = reason(item.nodeid)
    if why is None or report.when != "call" or report.skipped:
        return
    if report.passed:
        report.outcome, report.longrepr = "failed", f"it passes in PostgreSQL: take it out of {LIST.name}"
    else:
        SKIPPED[why] += 1
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: folders only: {why}")
