"""`Home`: the place where an agent lives, and the owner's hand in it.

Promise: opens the parts and offers verbs of a line or two; what a verb does stands in the module named after it. A part is
imported when it is first needed. A Home lives until `close`, is safe to share by threads, and asks the world for time, chance
and environment only through the arguments given here.
"""

from __future__ import annotations

import os
import random
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Generic, Self, TypeVar

from anima.config import Config, TidyConfig
from anima.errors import BadArguments, HomeError, NoSuchDocument, printable
from anima.home.opening import make_home, open_site, refuse_empty
from anima.home.verbs import look_at_arguments
from anima.layout import UNREVIEWED
from anima.layout.trust import served
from anima.model import Access, Choose, Complete, DocPath, Document, Embedder, Entry, Kind, Receipt, Runtime, Scope
from anima.prompt import Hook
from anima.prompt.gather import AgentIdentity, Prompts, main_prompt
from anima.site import Site, World
from anima.store.overlay import Overlay

if TYPE_CHECKING:
    from anima.backup.export import Exported
    from anima.backup.import_ import Imported
    from anima.backup.snapshot import Snapshots
    from anima.dream.sweep import Dreams, Sweep
    from anima.forget import Forget, Forgetting
    from anima.memory.inbox import Inbox
    from anima.memory.past import Past
    from anima.memory.write import Writer
    from anima.prompt import Prompt
    from anima.search.current import Search
    from anima.search.rank import Fusion, Hit, Legs, SearchAnswer
    from anima.sessions.session import Session, Sessions
    from anima.sessions.transcripts import Said
    from anima.upkeep.doctor import CheckedRooms
    from anima.upkeep.upkeep import Upkeep


T = TypeVar("T")


class part(Generic[T]):
    """A part of a home: made when it is first asked for, once, whatever thread asks."""

    def __init__(self, make: Callable[[Home], T]) -> None:
        self._make, self._name, self.__doc__ = make, make.__name__, make.__doc__

    def __get__(self, home: Home, owner: type[Home]) -> T:
        with home._mutex:
            if self._name not in home._parts:
                home._parts[self._name] = self._make(home)
                look_at_arguments(type(home._parts[self._name]), "__call__")
            made: T = home._parts[self._name]
            return made


def now() -> datetime:
    return datetime.now(UTC)


class Home:
    """A home that is open. Make one with `Home.open` or `Home.create`, close it or use it in a `with`."""

    def __init__(self, site: Site, *, hook: Hook | None = None, embedder: Embedder | None = None) -> None:
        if not isinstance(site, Site):
            raise BadArguments("a home is opened with Home.open(path), or made with Home.create(path)")
        self.site, self.layout, self.agent = site, site.layout, site.agent
        self.clock, self.dice, self.dialect, self._embedder = site.clock, site.dice, site.layout.dialect, embedder
        self._mutex = threading.RLock()
        self._parts: dict[str, Any] = {}
        self.identity = AgentIdentity(site)
        self.prompts = Prompts(site, self.identity, hook)

    # -- opening --------------------------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        path: str | Path | Overlay | None = None,
        *,
        tenant: str | None = None,
        agent: str | None = None,
        create: bool = False,
        settings: Mapping[str, Any] | None = None,
        clock: Callable[[], datetime] | None = None,
        dice: random.Random | None = None,
        env: Mapping[str, str] | None = None,
        hook: Hook | None = None,
        embedder: Embedder | None = None,
        finish: bool = True,
    ) -> Home:
        """The home in a folder, in whatever dialect. Opening it only finishes what a crash interrupted (unless not `finish`). Raises
        NoSuchHome, also for an empty folder. An address (`postgresql://…`, `file:…`, or DATABASE_URL where no path is given) is a
        tenant's agent or one file, and two layers (`anima.overlay`) are one home; `create` makes an empty one there, but never a
        tenant. `settings` are keys of anima.toml such as `{"prompt.style": "xml"}`; `agent` opens one of several agents; `hook` may
        change the pieces of a prompt before the privacy filter runs; `embedder` is asked instead of the configured one."""
        world = World(clock or now, dice or random.Random(), os.environ if env is None else env)
        site = open_site(path, world, tenant=tenant, create=create, agent=agent, settings=settings, finish=finish)
        refuse_empty(site, path)
        return cls(site, hook=hook, embedder=embedder)

    @classmethod
    def create(
        cls,
        path: str | Path | None = None,
        *,
        tenant: str | None = None,
        agent: str | None = None,
        name: str = "",
        emoji: str | None = None,
        again: bool = False,
        settings: Mapping[str, Any] | None = None,
        clock: Callable[[], datetime] | None = None,
        dice: random.Random | None = None,
        env: Mapping[str, str] | None = None,
        hook: Hook | None = None,
        embedder: Embedder | None = None,
    ) -> Home:
        """A new home with its core files. What stands in the folder already is left as it is, and a warning tells another
        name or emoji. A folder where one of this user's stood and vanished is refused, as it may only be unmounted, unless `again`."""
        from anima.prompt.identity import check

        for key, value in (("name", name), ("emoji", emoji)):
            if value:
                check(key, value)
        same: dict[str, Any] = {"tenant": tenant, "agent": agent, "settings": settings}
        world = World(clock or now, dice or random.Random(), os.environ if env is None else env)
        brand_new = make_home(path, world, again=again, **same)
        home = cls(open_site(path, world, finish=True, **same), hook=hook, embedder=embedder)
        home.seed(name=name, emoji=emoji, bootstrap=brand_new)
        who = home.identity.resolved()
        for key, asked, found in (("name", name, who.name), ("emoji", emoji, who.emoji)):
            if asked and (has := found.value if found else "none") != asked:
                said = f"what stands here is left as it is: its {key} is {printable(has)}, not {asked}"
                warnings.warn(said, stacklevel=3)
        return home

    def close(self) -> None:
        """Ends the sessions that are open, as closing each would, commits what is late and lets everything go. Closing twice does
        no harm. Another thread that is at work here is told that the home was closed."""
        opened = self._parts["sessions"]._open.valuerefs() if "sessions" in self._parts else ()
        for held in filter(None, [found() for found in opened]):
            with suppress(HomeError):
                held.close()
        with self._mutex:
            if self.site.ended.is_set():
                return
            self.site.ended.set()  # whoever is at work may ask for a part meanwhile, and is not waited for
        try:
            for held in filter(None, map(self._parts.get, ("index", "sessions"))):
                held.close()
            if "_writer" in self._parts and self.site.store.begun:
                self.site.store.commit()
        finally:
            self.site.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Home {self.name}, {self.dialect}{', closed' if self.site.ended.is_set() else ''}>"

    @property
    def config(self) -> Config:
        """What holds here now."""
        return self.site.config

    @property
    def name(self) -> str:
        """What this home is called among people: the whole path of its folder, or its address."""
        return self.site.store.name

    @property
    def credentials(self) -> Path:
        """Where the credentials of whoever serves this home lie: in the user's own configuration."""
        return served(self.site.env, self.name)

    def settings(self) -> list[tuple[str, Any, str]]:
        """Every setting with where its value came from; where the configuration says nothing, the dialect decides."""
        rows = []
        for key, value, source in self.config.rows():
            budget = getattr(self.layout, key.partition(".")[2], None) if value is None else None
            rows.append((key, budget, f"dialect {self.dialect}") if budget else (key, value, source))
        return rows

    def configure(self, key: str, value: str | float | bool | Sequence[str] | None) -> Receipt:
        """Sets a key of anima.toml, as the owner; None takes it out. `gate.rule` takes a rule as TOML, `gate.rule:ID` takes
        one out. It holds at once, but for dialect, folders and embedder. Raises BadConfig."""
        return self._writer.configure(key, value)

    # -- the parts ------------------------------------------------------------------------------------------------------

    @part
    def _writer(self) -> Writer:
        """The road in."""
        from anima.memory import Proposals
        from anima.memory.forgotten import ForgottenList
        from anima.memory.write import Writer

        store = self.site.store
        forgotten = ForgottenList(store.state, lambda: store.key)
        writer = Writer(self.site, Proposals(store.state, lambda: store.ledger, self.clock), forgotten)
        writer.watchers.append(lambda paths: self.index.touched(paths) if "index" in self._parts else None)
        return writer

    @part
    def inbox(self) -> Inbox:
        """What waits for the owner, and their yes and no."""
        from anima.memory.inbox import Inbox
        from anima.prompt.identity import parse

        def named(text: str) -> str:
            return parse(text).get("name") or self.identity.name

        return Inbox(
            self.site, self._writer, lambda p: self._forget.approve(p), named, lambda *no: self.sessions.refuse(*no)
        )

    @part
    def past(self) -> Past:
        """Looking back and taking back."""
        from anima.memory.past import Past

        return Past(self.site, self._writer)

    @part
    def index(self) -> Search:
        """The index, kept in step with the files; called, it is brought up to date."""
        from anima.search.current import Search
        from anima.search.embed import embedder_for
        from anima.upkeep import Retention

        return Search(
            self.site,
            embedder=lambda: (
                self._embedder or embedder_for(self.config, self.site.env, clock=self.clock, dice=self.dice)
            ),
            left_out=lambda: Retention(self.site.store.documents, self.layout, TidyConfig()).skips_index,
        )

    @part
    def sessions(self) -> Sessions:
        """Conversations: begun, taken up, listed, read and found."""
        from anima.sessions.session import Session, Sessions

        look_at_arguments(Session)
        return Sessions(
            self.site,
            prompts=self.prompts,
            writer=lambda: self._writer,
            search=lambda: self.index,
            propose=lambda *wish: self._forget.propose(*wish),
            nights=lambda: self.dreams.nights(),
        )

    @part
    def dreams(self) -> Dreams:
        """What recalls speak for becomes memory."""
        from anima.dream.sweep import Dreams

        return Dreams(self.site, lambda: self._writer)

    @part
    def upkeep(self) -> Upkeep:
        """What an owner does now and then: tidying, figures, health."""
        from anima.sessions.replay import time_of
        from anima.upkeep.doctor import look
        from anima.upkeep.upkeep import PastTalk, Upkeep

        def talks() -> Iterator[PastTalk]:
            return (PastTalk(time_of(row.started_at), row.entries, row.persona) for row in self.sessions.list())

        past, search, nights = (lambda: self.past), (lambda: self.index), (lambda: self.dreams.nights())
        health = partial(look, self.site, checked_rooms())
        return Upkeep(self.site, past=past, search=search, talks=talks, nights=nights, health=health)

    @part
    def snapshots(self) -> Snapshots:
        """Archives of the whole home."""
        from anima.backup.snapshot import Snapshots
        from anima.dream import due

        return Snapshots(self.site, agent=lambda: self.identity.name, trusted=lambda: self.is_vouched_for, due=due)

    @part
    def _said(self) -> Said:
        """Transcripts as files that are moved, and as holders of text."""
        from anima.sessions.transcripts import Said

        return Said(self.sessions)

    @part
    def _forget(self) -> Forget:
        """What forgets. Whoever keeps text stands in the order of the deed."""
        from anima.forget import Forget
        from anima.forget.holders import Derived, Files, SetAside, Versions, Waiting

        said = self._said
        holders = (
            Waiting(self.site, self._writer.proposals),
            said,
            SetAside(self.site),
            Files(self.site, said.is_one),
            Derived("index", lambda anew: self.index.freshen(anew=anew)),
            Derived("sessions", lambda anew: self.sessions.freshen(anew=anew)),
            Versions(self.site),
            self.snapshots,
        )
        return Forget(self._writer, holders, dreamed=self.dreams.dreamed_from, headers=said.headers)

    def next_snapshot(self) -> datetime | None:
        """When the next snapshot is taken where this home is served; None where none is."""
        from anima.dream import following

        at = self.config.snapshot.at
        return following(at, str(self.site.zone() or "UTC"), self.clock()) if at else None

    # -- the prompt -----------------------------------------------------------------------------------------------------

    def prompt(self, *, scope: Scope | str, sender: str | None = None, runtime: Runtime | None = None) -> Prompt:
        """The system prompt for a listener, with a manifest of what was shown, cut, missing or hidden."""
        listener = self.site.listener(scope, sender, runtime.channel if runtime else None)
        return self.prompts.prompt(listener, runtime=runtime or Runtime())

    def session(
        self,
        *,
        scope: Scope | str,
        channel: str | None = None,
        sender: str | None = None,
        access: Access = "rw",
        model: str | None = None,
        complete: Complete | None = None,
        account: str | None = None,
        chat: str | None = None,
        chat_type: str | None = None,
        group: str | None = None,
    ) -> Session:
        """A conversation: the agent's hand in this home. Its prompt is frozen now. A group chat (`chat_type`) narrows the
        scope to GROUP; `group` gives it a layer. `complete` is the host's model. Raises BadArguments when a binding gives
        this channel, account and chat to another agent."""
        who: dict[str, Any] = {"channel": channel, "sender": sender, "account": account, "chat": chat, "group": group}
        who |= {"chat_type": chat_type, "access": access}
        return self.sessions.begin(scope=scope, model=model, complete=complete, **who)

    def resume(
        self, id: str, *, model: str | None = None, access: Access = "rw", complete: Complete | None = None
    ) -> Session:
        """Takes a session up again: its listener, what it had read, and how far it was written down. The prompt is new.
        Raises NoSuchSession, for another agent's too."""
        return self.sessions.resume(id, model=model, access=access, complete=complete)

    # -- reading --------------------------------------------------------------------------------------------------------

    def read(self, path: str | DocPath) -> Document:
        """A document as it stands. Raises NoSuchDocument."""
        return self.site.store.documents.read(DocPath.parse(path))

    def exists(self, path: str | DocPath) -> bool:
        """Whether there is such a document."""
        return self.site.store.documents.exists(DocPath.parse(path))

    def list(self, folder: str = "") -> tuple[Entry, ...]:
        """What stands in one folder, folders first."""
        return self.site.store.documents.list(folder.rstrip("/"))

    def list_all(self, folder: str = "") -> tuple[Entry, ...]:
        """Every file beneath a folder."""
        return tuple(self.site.store.documents.list_all(folder.rstrip("/")))

    def tree(self, folder: str = "", depth: int = 1) -> tuple[str, ...]:
        """Paths beneath a folder down to `depth` levels; folders end with a slash."""
        if not 1 <= depth <= 10:
            raise BadArguments(f"depth is a number from 1 to 10, not {depth}")
        found: tuple[str, ...] = ()
        for entry in self.list(folder):
            below = self.tree(entry.path, depth - 1) if entry.is_folder and depth > 1 else ()
            found += (entry.path + "/" * entry.is_folder, *below)
        return found

    def today(self) -> Document | None:
        """Today's log, in the user's timezone; None while nothing was noted today."""
        with suppress(NoSuchDocument):
            return self.site.store.documents.read(self.layout.daily_path(self.site.today()))
        return None

    # -- finding --------------------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        scope: Scope | str,
        sender: str | None = None,
        limit: int = 6,
        at: date | datetime | None = None,
        kinds: Collection[str] | None = None,
        since: date | None = None,
        trusted_only: bool = True,
        fusion: Fusion = "context",
        legs: Legs = "both",
        min_score: float = 0.0,
        half_life: float | None = None,
        mmr: float | None = None,
        per_source: int | None = None,
        explain: bool = False,
        rerank: Callable[[str, Sequence[Hit]], Sequence[float]] | None = None,
    ) -> SearchAnswer:
        """Hits for a question, best first, as this listener may see them; `.notes` says why there are none.
        `at` is when the question is put ("two weeks ago" counts from there); `since` a day, `kinds` of documents narrow it. A line
        counts half after `half_life` days; `mmr` is 1 for relevance alone, 0 for variety; `rerank` gives each hit another score."""
        at, listener = self.site.now() if at is None else at, self.site.listener(scope, sender)
        how: dict[str, Any] = {"fusion": fusion, "legs": legs, "mmr": mmr, "kinds": kinds, "min_score": min_score}
        how |= {"half_life": half_life, "per_source": per_source, "explain": explain, "rerank": rerank, "since": since}
        answer = self.index.search(listener, query, limit=limit, at=at, trusted_only=trusted_only, **how)
        if kinds is not None or not self.site.store.documents.names(UNREVIEWED):
            return answer
        waiting = self.index.waiting(listener, query, at=at)
        note = f"{waiting} noted line{'s' if waiting > 1 else ''} may match too, and wait for you: anima review"
        return replace(answer, notes=(*answer.notes, note)) if waiting else answer

    def backfill(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Makes the vectors that are missing, because the embedder was away or came later; how many it made."""
        return self.index.backfill(progress)

    # -- writing, as the owner ------------------------------------------------------------------------------------------

    def write(self, path: str | DocPath, text: str, *, base: str | None = None, reason: str = "") -> Receipt:
        """Replaces a document, or makes it. With `base` (a digest; "" for nothing) only what was read is replaced."""
        return self._submit(Kind.WRITE, DocPath.parse(path), text, base=base, reason=reason)

    def append(self, path: str | DocPath, text: str, *, reason: str = "") -> Receipt:
        """Adds lines at the end of a document; never conflicts with others who do."""
        return self._submit(Kind.APPEND, DocPath.parse(path), text, reason=reason)

    def edit(self, path: str | DocPath, old: str, new: str, *, replace_all: bool = False, reason: str = "") -> Receipt:
        """Puts one text in the place of another that stands in the document once (or everywhere)."""
        return self._writer.edit(DocPath.parse(path), old, new, every=replace_all, reason=reason)

    def move(self, path: str | DocPath, to: str | DocPath, *, reason: str = "") -> Receipt:
        """Gives a document another name or place."""
        return self._submit(Kind.MOVE, DocPath.parse(path), to=DocPath.parse(to), reason=reason)

    def delete(self, path: str | DocPath, *, base: str | None = None, reason: str = "") -> Receipt:
        """Removes a document; `undo` brings it back. With `base`, only if it still is what was read."""
        return self._submit(Kind.DELETE, DocPath.parse(path), base=base, reason=reason)

    def remember(
        self, fact: str, *, section: str | None = None, choose: Choose | None = None, reason: str = ""
    ) -> Receipt:
        """One line more in MEMORY.md; one that says so already is told. Where no section is sure, `choose(likely, otherwise)`
        is given headings, likeliest first, and the one it goes under else; it names one, or None for the latter."""
        return self._writer.remember(fact, section=section, choose=choose, reason=reason)

    def note(self, content: str, *, reason: str = "") -> Receipt:
        """One line more in today's log, in the user's timezone."""
        return self._writer.note(content, reason=reason)

    def seed(self, *, name: str = "", emoji: str | None = None, bootstrap: bool = False) -> tuple[str, ...]:
        """Writes the core files this dialect knows and this home lacks; returns what was made."""
        return self._writer.seed(name=name, emoji=emoji, bootstrap=bootstrap)

    def import_directory(self, folder: str | Path, *, mine: bool = False) -> Imported:
        """Copies a tree of Markdown documents into the home, overwriting none; see `import_from`. The first that an
        empty home is given go to their places, as those of a folder do that is opened as a home."""
        is_mine = mine or not (self.site.store.begun or self.list_all())
        return self._import(folder, format="markdown", mine=is_mine, files=False, sessions=False)

    def import_from(
        self,
        source: str | Path,
        *,
        format: str = "auto",
        dry_run: bool = False,
        replace: bool = False,
        mine: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> Imported:
        """Takes in an export, or a folder of another dialect, with its transcripts and other files. Overwrites nothing. Documents wait
        in `unreviewed/` until the owner keeps them, unless the owner says that all of it is theirs: with `mine` they go to their
        places, and with `replace` those that differ are written as changes that `undo` takes back."""
        return self._import(source, format=format, dry_run=dry_run, replace=replace, mine=mine, progress=progress)

    def _import(self, source: str | Path, **asked: Any) -> Imported:
        from anima.backup.import_ import import_from

        return import_from(self.site, source, writer=self._writer, form=self._said, **asked)

    def export(
        self,
        target: str | Path | IO[bytes],
        *,
        format: str = "markdown",
        sessions: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> Exported:
        """Writes everything to a new folder (`markdown`, or a dialect's name) or file or stream (`jsonl`)."""
        from anima.backup.export import export

        return export(self.site, target, form=self._said, format=format, sessions=sessions, progress=progress)

    def _submit(self, kind: Kind, path: DocPath, text: str = "", **more: Any) -> Receipt:
        from anima.memory.write import owners

        return self._writer.submit([owners(path, kind, text, **more)])[0]

    def dream(
        self,
        *,
        dry_run: bool = False,
        preset: str | None = None,
        since: date | None = None,
        complete: Complete | None = None,
    ) -> Sweep:
        """One night: what recalls speak for becomes memory, what is no longer so leaves it. Undone as one change. `complete` is
        a model: it may word, merge and replace lines, and code decides whether any of it stands."""
        if not dry_run:
            self.sessions.flush_idle()
            return self.dreams.sweep(preset=preset, since=since, complete=complete)
        return self.dreams.tonight(preset=preset, since=since, complete=complete)

    def dream_if_due(self, *, complete: Complete | None = None) -> Sweep | None:
        """A night whose hour has come (`dream.at`, in the user's timezone), or None. Those that were missed are one."""
        return self.dream(complete=complete) if self.dreams.due() else None

    # -- taking back -----------------------------------------------------------------------------------------------------

    def undo(
        self, change: str | None = None, *, session: str | None = None, content: str | None = None
    ) -> tuple[Receipt, ...]:
        """Takes back one change (the newest when none is named) or everything a session wrote. With `content` only what
        was seen is done."""
        return self.past.undo(change=change, session=session, content=content)

    def forget(
        self,
        *,
        text: str | Sequence[str] | None = None,
        pattern: str | None = None,
        line: str | None = None,
        session: str | None = None,
        sender: str | None = None,
        origin: str | None = None,
        since: date | datetime | str | None = None,
        until: date | datetime | str | None = None,
        purge: bool = False,
        dry_run: bool = False,
    ) -> Forgetting:
        """Forgets texts or a pattern wherever they stand, or a line (`PATH:NUMBER`), a session, what a sender said, what came from an
        origin or in a time. With `purge`, from history and every byte of the home; `dry_run` only looks. Raises NoSuchSession."""
        what = {"text": text, "pattern": pattern, "line": line, "session": session, "sender": sender, "origin": origin}
        return self._forget.ask(**what, since=since, until=until, purge=purge, dry_run=dry_run)

    # -- trust ------------------------------------------------------------------------------------------------------------

    def trust(self) -> None:
        """Trusts this folder's anima.toml from the next opening on; kept in the user's own configuration."""
        self.site.register.note(self.name, identity=self.site.store.identity, trusted=True)

    @property
    def is_vouched_for(self) -> bool:
        """Whether this user made this folder or trusts it, so that what it says of places outside it is believed."""
        return self.site.register.trusts(self.name, self.site.store.identity)


look_at_arguments(Home, "__enter__")
look_at_arguments(AgentIdentity)
look_at_arguments(Prompts)


def checked_rooms() -> CheckedRooms:
    """What the doctor asks of sessions and prompts."""
    from anima.sessions.transcripts import checked_transcripts
    from anima.upkeep.doctor import CheckedRooms

    return CheckedRooms(parts=checked_transcripts, prompt=main_prompt, opens=open_site)
