"""The site of a home, which every room is given; and how one is found, made and opened.

Promise: opening changes nothing on disk; making touches nothing that is there; a folder of another user's, or one where
a home vanished, is refused with a sentence. Not here: the verbs of an open home (home).
"""

from __future__ import annotations

import os
import random
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, tzinfo
from pathlib import Path
from typing import Any

from anima import config as configs
from anima.config import AgentConfig, Config, timezone
from anima.errors import BadConfig, HomeError, NoSuchDocument, NoSuchHome, Refused
from anima.layout.dialects import Detection, detect, layout_for
from anima.layout.listener import Listener
from anima.layout.table import Layout, Policy, Row
from anima.layout.trust import Register
from anima.model import DocPath
from anima.store.folder import Folder, is_restoring, refuse_newer_home
from anima.store.place import FolderStore, Rules


@dataclass(frozen=True, slots=True)
class Site:
    """What every room is given: where things are and what holds here. No verbs."""

    store: FolderStore
    layout: Layout
    config: Config
    clock: Callable[[], datetime]
    dice: random.Random
    agent: str

    def new_id(self) -> str:
        return str(uuid.UUID(int=self.dice.getrandbits(128), version=4))

    @property
    def own(self) -> AgentConfig:
        """What the configuration says of this agent."""
        return next((agent for agent in self.config.agent if agent.id == self.agent), AgentConfig(id=self.agent))

    def now(self, listener: Listener | None = None) -> datetime:
        """The moment in the user's timezone; with a listener, in theirs."""
        return self.clock().astimezone(self.zone(listener))

    def today(self, listener: Listener | None = None) -> date:
        return self.now(listener).date()

    def zone(self, listener: Listener | None = None) -> tzinfo | None:
        """The timezone: the configuration's, else the listener's USER.md's, else the owner's; None is the system's."""
        if self.config.timezone:
            return timezone(self.config.timezone)
        row = self.layout.row("user") if self.layout.has("user") else None
        for path in dict.fromkeys([listener.path_of(row) if listener else row.path, row.path] if row else ()):
            try:
                text = self.store.documents.read(DocPath.parse(path)).text
            except HomeError:
                continue
            if zone := stated_zone(text):
                return zone
        return None


_ZONE = re.compile(r"^[ \t]*(?:[-*+][ \t]+)?[*_]*time[ -]?zone[*_]*[ \t]*[:：][*_ \t]*([A-Za-z][\w+/-]*)", re.I | re.M)


def stated_zone(text: str) -> tzinfo | None:
    """The timezone a USER.md states, such as `- **Timezone:** America/Bogota`; the first that there is."""
    if not ("zone" in text or "Zone" in text or "ZONE" in text):
        return None
    for stated in _ZONE.finditer(text):
        try:
            return timezone(stated[1])
        except ValueError:
            continue
    return None


CONFIG_TEXT = """\
# How this home is run. Every key is optional; `anima config` shows them all with where each value came from.
dialect = "{dialect}"
"""


def note_quietly(register: Register, store: Folder, *, made: datetime, trusted: bool) -> None:
    """Writes a new home into the user's list. A list that cannot be written costs only the trust, so it stops nothing."""
    try:
        register.note(store.root, identity=store.identity, made=made, trusted=trusted)
    except HomeError:
        pass


def place_of(path: str | Path) -> str:
    """Where a path leads, as the user's list names it, whether or not anything is there."""
    try:
        return str(Path(path).expanduser().resolve())
    except (OSError, RuntimeError, ValueError):
        return str(path)


def opened(path: str | Path, register: Register) -> Folder:
    try:
        store = _whole(Folder(path))
    except NoSuchHome as error:
        known = register.known(place_of(path))
        if known and known.made:
            raise NoSuchHome(
                f"{path}: a home was made here on {known.made[:10]}, and it has vanished",
                hint="is its disk mounted? restore it from a backup, or make a new one with anima init --again",
            ) from None
        raise error from None
    try:
        refuse_newer_home(store)
    except BaseException:
        store.close()
        raise
    return store


def _whole(store: Folder) -> Folder:
    """The store, once a restore that a crash cut short is finished: before anybody reads, the home is old or new."""
    if not is_restoring(store):
        return store
    from anima.store.private import Machine

    machine = Machine(store)
    try:
        with machine.lock.hold():
            pass  # taking the lock finishes it
    except Refused:
        pass  # which is what it tells us
    finally:
        machine.lock.close()
        store.close()
    return Folder(store.root)


def make(path: str | Path, register: Register, *, again: bool, now: datetime) -> bool:
    """Makes the folder of a home with its configuration; whether it is brand-new, nothing of an agent's being there."""
    from anima.store.outside import expanded

    store = _folder(expanded(path), register, again)
    try:
        brand_new = not has_life(store)
        dialect = "anima" if brand_new else detected(store, Config()).dialect
        ours = store.create(DocPath.parse(configs.FILE), CONFIG_TEXT.format(dialect=dialect))
        if brand_new:
            from anima.store.private import Machine

            Machine(store).put("made", b"anima\n")  # history may then stand in .git, where a person looks for it
        # A configuration that was here before is somebody else's until the owner says trust-home.
        vouched = ours or register.trusts(store.root, store.identity)
        note_quietly(register, store, made=now, trusted=vouched)
        return brand_new
    finally:
        store.close()


def _folder(path: Path, register: Register, again: bool) -> Folder:
    """The folder of a home to be, made when it is missing. Refuses to bury one that vanished."""
    known = register.known(place_of(path))
    gone = not path.exists() or (path.is_dir() and not any(path.iterdir()))
    if known and known.made and gone and not again:
        raise Refused(
            f"{path}: a home made on {known.made[:10]} stood here, and it has vanished; nothing was written",
            rule="vanished-home",
            hint="is its disk mounted? restore it from a backup, or say anima init --again for a new one",
        )
    make_folder(path, for_owner=gone)
    return Folder(path)


def make_folder(path: Path, *, for_owner: bool) -> None:
    """Makes the folder if it is missing; with `for_owner`, for its owner alone. Raises Refused."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        if for_owner:
            path.chmod(0o700)
    except FileExistsError:
        raise Refused(f"{path}: there is a file of that name; a home is a folder") from None
    except OSError as error:
        raise Refused(f"{path}: the folder cannot be made ({os.strerror(error.errno or 0)})") from None


def has_life(store: Folder) -> bool:
    """Whether anything in the folder says that an agent lived here before."""
    from anima.layout.starter import NAMES

    core = {name.casefold() for name in NAMES} | {"memory", ".git", "daily", "notes"}
    return any(name.casefold() in core for name in store.names(""))


def configured(store: Folder, register: Register, env: Mapping[str, str], flags: Mapping[str, Any] | None) -> Config:
    try:
        text: str | None = store.read(DocPath.parse(configs.FILE)).text
    except NoSuchDocument:
        text = None
    trusted = text is None or register.trusts(store.root, store.identity)
    return configs.load(text, env=env, flags=flags, trusted=trusted)


def agent_home(config: Config, agent: str, store: Folder) -> Path | None:
    """Where an agent of the configuration lives; None when it shares this folder. Raises BadConfig for one unknown."""
    found = next((a for a in config.agent if a.id == agent), None)
    if found is None:
        known = ", ".join(a.id for a in config.agent) or "none"
        raise BadConfig(f"there is no agent {agent!r} in the configuration (there is: {known})", where=configs.FILE)
    return Path(store.root, Path(found.home).expanduser()) if found.home else None


def first_agent(config: Config) -> str:
    return config.agent[0].id if config.agent else "main"


def detected(store: Folder, config: Config) -> Detection:
    if config.dialect != "auto":
        return Detection(dialect=config.dialect, why=f"dialect is set by {config.sources.get('dialect', 'default')}")
    names = []
    for name in store.names(""):
        below = store.names(name) if name in ("memory", "daily", "notes", "knowledge", "agents") else []
        found = store.stat(name)
        names.append(name + "/" if found and not (found.st_mode & 0o100000) else name)
        names += [f"{name}/{inner}" + ("/" if _is_folder(store, f"{name}/{inner}") else "") for inner in below[:2000]]
    return detect(names)


def _is_folder(store: Folder, path: str) -> bool:
    found = store.stat(path) if "." not in path.rpartition("/")[2] else None
    return found is not None and not found.st_mode & 0o100000


def laid_out(dialect: str, config: Config) -> Layout:
    """The dialect's table with what the configuration adds: the alternate soul's name, extra files, another folder for
    transcripts."""
    layout = layout_for(dialect)
    rows = []
    if config.persona.file != "SOUL_EVIL.md":
        rows.append(Row(role="alternate-soul", path=config.persona.file, policy=Policy.IDENTITY))
    for asked in config.prompt.additional:
        if layout.row_of(DocPath.parse(asked.path)).role == "note":
            rows.append(
                Row(role="note", path=asked.path, policy=Policy.ASK)
            )  # what every prompt holds is not just memory
    if config.sessions.dir not in ("", "sessions"):
        rows.append(Row(role="sessions", path=f"{config.sessions.dir}/", policy=Policy.CLOSED, kind="session"))
    if not rows:
        return layout
    taken = {row.role for row in rows} - {"note"}
    return replace(layout, others=(*(row for row in layout.others if row.role not in taken), *rows))


def rules_for(layout: Layout, config: Config, *, clock: Callable[[], datetime], agent: str) -> Rules:
    """What the configuration and the file table say that a store must know."""
    return Rules(
        clock=clock,
        author=agent,
        is_closed=lambda path: layout.row_of(path).policy is Policy.CLOSED,
        history=config.history.enabled,
        unkept=tuple(sorted({"sessions", config.sessions.dir or "sessions"})),  # what was said is not history's to keep
    )


def was_interrupted(store: Folder) -> bool:
    """Whether the ledger's last record is an intent: a batch that a crash cut short (or that is being written now)."""
    last = store.last_line(".anima/ledger.jsonl")
    return b'"kind":"intent"' in last or (bool(last) and not last.endswith(b"\n"))
