"""Two tenants on one server, thirty-two workers, every verb of a home and of a session, every tool, and errors: what one of
them knows stands in nothing the other is told. Again with the application's own conditions taken away, so that row policies
alone hold; and again through pgbouncer in transaction mode."""

from __future__ import annotations

import inspect
import itertools
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anima import Home, Scope
from anima.errors import HomeError
from anima.sessions.session import Session
from anima.store.rows import transaction
from anima.testing.embedder import MockEmbedder
from conftest import Cluster
from fronting import bare, made_up

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.long
WORKERS = int(os.environ.get("CANARY_WORKERS", "32"))
Verb = Callable[[Any, str, Path], object]


def noted(home: Home, canary: str, place: Path) -> object:
    """What waits for the owner, and is decided."""
    with home.session(scope=Scope.MAIN) as session:
        session.call("memory_write", {"target": "soul", "content": f"# Soul\n\nBe {canary}.\n"})
        session.taint("web")
        session.call("memory_write", {"target": "memory", "content": f"{canary} was on the web"})
    waiting = home.inbox.all()
    return (
        waiting,
        home.inbox.noted(),
        [home.inbox.rule_for(each) for each in waiting],
        [home.inbox.deny(each.id) for each in waiting[:1]],
        home.inbox.keep(*(each.entry.id for each in home.inbox.noted()[:1])),
        home.inbox.broken(),
    )


def looked_back(home: Home, canary: str, place: Path) -> object:
    revisions, changes = home.past.log(limit=20), home.past.changes(limit=20)
    return (
        revisions,
        changes,
        home.past.audit(),
        home.past.history_problems(),
        [home.past.diff(revision.id) for revision in revisions[:5]],
        home.past.why("MEMORY.md", 1) if home.exists("MEMORY.md") else None,
        list(home.past.since(0)),
        home.past.size(),
        home.past.show_undo(),
    )


def heard(home: Home, canary: str, place: Path) -> object:
    rows = home.sessions.list()
    found = [home.sessions.find("name"), [home.sessions.read(row.id) for row in rows[:5]]]
    return rows, found, [home.sessions.marks(row.id) for row in rows[:5]]


def dreamt(home: Home, canary: str, place: Path) -> object:
    return home.dreams.due(), home.dreams.kept(), home.dreams.nights(), home.dreams.diary(), home.dreams.tonight()


def kept_up(home: Home, canary: str, place: Path) -> object:
    look = home.upkeep.look(days=0)
    return home.upkeep.doctor(), home.upkeep.numbers(), home.upkeep.validate(), look


def indexed(home: Home, canary: str, place: Path) -> object:
    from anima.layout import Listener

    owner = Listener(scope=Scope.MAIN)
    return home.index.bring_up(rebuild=True), home.index.graph(owner), home.index.about(canary, owner), home.index.notes


def snapped(home: Home, canary: str, place: Path) -> object:
    made = home.snapshots.take(to=place / "home.tar.gz")
    return made.path, home.snapshots.verify(made.path), home.snapshots.all(), Path(made.path).read_bytes()[:0]


def exported(home: Home, canary: str, place: Path) -> object:
    home.export(place / "out")
    return [path.read_bytes() for path in sorted((place / "out").rglob("*")) if path.is_file()]


def talked(home: Home, canary: str, place: Path) -> object:
    """Every verb of a session, and every tool it has, with what it asks for made up."""
    with home.session(scope=Scope.MAIN, channel="test") as session:
        seen: list[object] = [told(SESSION[name], session, canary, place) for name in SESSION]
        for tool in session.tools():
            given = made_up(tool.schema(), canary)  # type: ignore[union-attr]
            seen.append(told(lambda s, c, p, t=tool, g=given: s.call(t.name, g), session, canary, place))  # type: ignore[misc]
    return seen


HOME: dict[str, Verb] = {
    "seed": lambda home, canary, place: home.seed(name=canary),
    "remember": lambda home, canary, place: home.remember(f"{canary} keeps bees."),
    "note": lambda home, canary, place: home.note(f"{canary} had tea"),
    "write": lambda home, canary, place: home.write(f"{canary}.md", f"- {canary}\n- my name is {canary}\n"),
    "append": lambda home, canary, place: home.append(f"{canary}.md", "- more\n"),
    "edit": lambda home, canary, place: home.edit(f"{canary}.md", "more", f"more {canary}"),
    "session": talked,
    "resume": lambda home, canary, place: [home.resume(row.id).close() for row in home.sessions.list()[:2]],
    "move": lambda home, canary, place: home.move(f"{canary}.md", f"notes/{canary}.md"),
    "read": lambda home, canary, place: [home.read(entry.path) for entry in home.list_all()],
    "list": lambda home, canary, place: (home.list(), home.list("notes")),
    "list_all": lambda home, canary, place: home.list_all(),
    "tree": lambda home, canary, place: home.tree(depth=3),
    "exists": lambda home, canary, place: home.exists("USER.md"),
    "today": lambda home, canary, place: home.today(),
    "search": lambda home, canary, place: home.search("bees tea name web", scope=Scope.MAIN, limit=50),
    "prompt": lambda home, canary, place: [home.prompt(scope=scope).text for scope in Scope],
    "inbox": noted,
    "sessions": heard,
    "past": looked_back,
    "undo": lambda home, canary, place: home.undo(),
    "index": indexed,
    "backfill": lambda home, canary, place: home.backfill(),
    "dreams": dreamt,
    "dream": lambda home, canary, place: home.dream(),
    "dream_if_due": lambda home, canary, place: home.dream_if_due(),
    "upkeep": kept_up,
    "snapshots": snapped,
    "next_snapshot": lambda home, canary, place: home.next_snapshot(),
    "export": exported,
    "import_from": lambda home, canary, place: home.import_from(place / "out"),
    "import_directory": lambda home, canary, place: home.import_directory(place / "out", mine=True),
    "config": lambda home, canary, place: home.config,
    "settings": lambda home, canary, place: home.settings(),
    "configure": lambda home, canary, place: home.configure("agent.name", canary),
    "credentials": lambda home, canary, place: home.credentials,
    "name": lambda home, canary, place: home.name,
    "is_vouched_for": lambda home, canary, place: home.is_vouched_for,
    "trust": lambda home, canary, place: home.trust(),
    "forget": lambda home, canary, place: home.forget(text=f"{canary} had tea", purge=True),
    "delete": lambda home, canary, place: home.delete(f"notes/{canary}.md"),
    "no such document": lambda home, canary, place: home.read("nowhere.md"),
    "no such folder": lambda home, canary, place: home.list("nowhere"),
    "no such session": lambda home, canary, place: home.sessions.read("nobody"),
    "no such revision": lambda home, canary, place: home.past.diff("0" * 40),
    "no such proposal": lambda home, canary, place: home.inbox.get("p000000000000"),
    "no such snapshot": lambda home, canary, place: home.snapshots.verify(place / "nothing.tar.gz"),
    "a stale base": lambda home, canary, place: home.write("MEMORY.md", "x\n", base="0" * 64),
}
SESSION: dict[str, Verb] = {
    "log": lambda session, canary, place: session.log("user", f"my name is {canary}"),
    "call": lambda session, canary, place: session.call("memory_search", {"query": "bees tea name web"}),
    "read": lambda session, canary, place: session.read("MEMORY.md"),
    "documents": lambda session, canary, place: session.documents(),
    "context": lambda session, canary, place: session.context(),
    "flush": lambda session, canary, place: session.flush("test"),
    "fresh_prompt": lambda session, canary, place: session.fresh_prompt().text,
    "refresh": lambda session, canary, place: session.refresh().text,
    "may": lambda session, canary, place: session.may("write"),
    "news": lambda session, canary, place: session.news(),
    "noted": lambda session, canary, place: session.noted(),
    "now": lambda session, canary, place: session.now(),
    "owner_typed": lambda session, canary, place: session.owner_typed(),
    "pressure": lambda session, canary, place: session.pressure(100_000),
    "after_compaction": lambda session, canary, place: session.after_compaction(tokens=9, summary=canary),
    "run": lambda session, canary, place: session.run([]),
    "sub": lambda session, canary, place: session.sub().close(),
    "tools": lambda session, canary, place: session.tools(),
    "tool": lambda session, canary, place: session.tool("memory_search"),
    "talk": lambda session, canary, place: repr(session.talk),
}
# What other rooms of ours call, or what only ends or marks something.
INNER = {
    "at_work",
    "catch_up",
    "change",
    "close",
    "judged",
    "leave",
    "submit",
    "taint",
    "take_in",
    "trust",
    "wish",
    "wish_forgotten",
}


def told(verb: Verb, asked: Any, canary: str, place: Path) -> str:
    """What a verb tells, an error among it."""
    try:
        return repr(verb(asked, canary, place))
    except HomeError as error:
        return f"{error} {error.hint}"


def test_every_verb_is_among_those_that_are_tried() -> None:
    def verbs(of: type) -> set[str]:
        return {
            name
            for name in dir(of)
            if not name.startswith("_")
            and not isinstance(inspect.getattr_static(of, name), property | type(None) | str | int | bool)
        }

    assert verbs(Home) - HOME.keys() == {"open", "create", "close"}
    left = {name for name in verbs(Session) if callable(inspect.getattr_static(Session, name))} - SESSION.keys() - INNER
    assert not left


def live_beside(address: str, cluster: Cluster, *, together: bool) -> None:
    """Half of the workers in each of two tenants, all at once; together in one home, or each in one of its own."""
    canaries = {cluster.new_tenant(): f"canary{os.urandom(6).hex()}" for _ in range(2)}
    seen, failed = list[tuple[str, str, str]](), list[BaseException]()

    def work(tenant: str, number: int) -> None:
        place = Path(tempfile.mkdtemp(dir=own))
        agent = "main" if together else f"agent{number}"
        try:
            with Home.open(address, tenant=tenant, agent=agent, create=True, embedder=MockEmbedder()) as home:
                for name, verb in HOME.items():
                    seen.append((tenant, name, told(verb, home, canaries[tenant], place)))
            with pytest.raises(HomeError) as caught:
                Home.open(address, tenant=tenant, agent="nobody")
            seen.append((tenant, "open", str(caught.value)))
        except BaseException as error:
            failed.append(error)

    with tempfile.TemporaryDirectory() as own:
        pairs = itertools.product(canaries, range(WORKERS // 2))
        threads = [threading.Thread(target=work, args=pair) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed, failed
    assert len(seen) == len(threads) * (len(HOME) + 1)
    for tenant, name, text in seen:
        crossed = [canary for other, canary in canaries.items() if other != tenant and canary in text]
        assert not crossed and not any(other in text for other in canaries if other != tenant), name
    for tenant, canary in canaries.items():
        own_words = {name for whose, name, text in seen if whose == tenant and canary in text}
        assert {
            "read",
            "search",
            "prompt",
            "sessions",
            "past",
            "session",
        } <= own_words  # and so would the other's be seen


def test_nothing_crosses(cluster: Cluster, sealed: str) -> None:
    live_beside(cluster.application, cluster, together=False)


def test_nothing_crosses_by_row_policies_alone(cluster: Cluster, sealed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "_told", bare(transaction._told))  # and so two homes of one tenant would be one
    live_beside(cluster.application, cluster, together=True)


def test_nothing_crosses_through_pgbouncer(cluster: Cluster, sealed: str, bouncer: str) -> None:
    live_beside(bouncer, cluster, together=False)
