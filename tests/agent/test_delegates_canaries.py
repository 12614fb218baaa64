"""Nothing of USER or MEMORY reaches a sub-agent, a peer or a routine beyond what the table and headings share, in any dialect.

Each of them looks with every tool it has at every document there is, in the example homes with their planted words.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from anima import DocPath, Home, Scope
from anima.agent.rituals import Rituals
from anima.layout.dialects import DIALECTS, layout_for
from anima.testing import Clock
from casting import Cast, Step, main_talk, put

PLANTED = json.loads((Path(__file__).parents[1] / "homes" / "canaries.json").read_text(encoding="utf-8"))
SHARED = {"anima": {"CANARY-ANIMA-KITCHEN"}}  # what a heading of MEMORY.md shares with sub-agents
Example = Callable[[str], Path]


def private(dialect: str, scope: Scope) -> set[str]:
    """The words of files that the table keeps from a scope: all that is about a person, and what was remembered."""
    layout, found = layout_for(dialect), set[str]()
    for path, words in PLANTED[dialect].items():
        row = layout.row_of(DocPath.parse(path.partition("#")[0]))
        if path.startswith("users/") or (row.role in ("user", "memory", "daily") and scope not in row.scopes):
            found |= set(words)
    assert found
    return found - (SHARED.get(dialect, set()) if scope is Scope.SUBAGENT else set())


def looks(folder: Path) -> list[Step]:
    """Every reading tool, at everything."""
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md") if ".anima" not in path.parts)
    words = ["boat", "ana", "kitchen", "engine", "money", "CANARY", "health", "today", "prefers"]
    steps: list[Step] = [("memory_get", {"path": path}) for path in paths]
    steps += [
        ("memory_search", {"query": word, "corpus": corpus, "limit": 20})
        for word in words
        for corpus in ("all", "unreviewed")
    ]
    steps += [
        ("memory_tree", {"depth": 9}),
        ("who_am_i", {}),
        ("session_logs", {"action": "recent"}),
        ("memory_history", {"diff": True}),
    ]
    steps += [("memory_write", {"target": path, "old_string": "CANARY", "new_string": "x"}) for path in paths]
    return [*steps, "So."]


def leaked(cast: Cast, who: str, dialect: str, scope: Scope) -> list[str]:
    told = cast.seen[who]
    assert who in cast.tools and told.count("\n") > 5
    return sorted(word for word in private(dialect, scope) if word in told)


@pytest.mark.parametrize("workspace", ["isolated", "shared"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_nothing_private_reaches_a_sub_agent(example: Example, clock: Clock, dialect: str, workspace: str) -> None:
    folder = example(dialect)
    page = f"---\ndescription: Looks.\nworkspace: {workspace}\nlimits: {{requests: 200, tokens: 1000000}}\n---\n\nYou are the scout.\n"
    put(folder, "subagents/scout.md", page)
    with Home.open(folder, clock=clock, settings={"timezone": "America/Bogota"}) as home:
        cast = Cast([("agent_spawn", {"agent": "scout", "task": "Look.", "wait": 600}), "So."], scout=looks(folder))
        main_talk(home, cast)
        assert leaked(cast, "scout", dialect, Scope.SUBAGENT) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_nothing_private_reaches_whoever_asks_a_peer(
    example: Example, tmp_path: Path, clock: Clock, dialect: str
) -> None:
    folder = example(dialect)
    (folder / "AGENTS.md").write_text("# Agents\n\nYou are the peer.\n", encoding="utf-8")
    rows = f'\n[[agent]]\nid = "aria"\nallowed_delegates = ["peer"]\n\n[[agent]]\nid = "peer"\nhome = "{folder}"\n'
    Home.create(tmp_path / "aria", name="Aria", clock=clock).close()
    with (tmp_path / "aria" / "anima.toml").open("a", encoding="utf-8") as file:
        file.write(rows)
    with Home.open(folder, clock=clock) as theirs:
        theirs.site.register.note(theirs.name, identity=theirs.site.store.identity, trusted=True)
    with Home.open(tmp_path / "aria", clock=clock) as home:
        for start in range(0, len(looks(folder)), 38):  # of as many requests as one turn may make
            cast = Cast(
                [("agent_ask", {"agent": "peer", "text": "Look."}), "So."],
                peer=[*looks(folder)[start : start + 38], "So."],
            )
            main_talk(home, cast)
            assert leaked(cast, "peer", dialect, Scope.GROUP) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_nothing_private_reaches_a_routine_beyond_its_scope(example: Example, dialect: str) -> None:
    folder, clock = example(dialect), Clock("2026-05-08T12:00:00+00:00")
    put(folder, "routines/look.md", "---\nevery: 1h\ntokens: 100000000\n---\nYou are woken to look at all.\n")
    given = {"timezone": "America/Bogota", "rituals.day_tokens": 100_000_000, "rituals.heartbeat": ""}
    with Home.open(folder, clock=clock, settings=given) as home:
        for start in range(0, len(looks(folder)), 38):
            cast = Cast([*looks(folder)[start : start + 38], "HEARTBEAT_OK"])
            assert Rituals(home, made=cast).run("look").status in ("silent", "delivered")
            assert leaked(cast, "main", dialect, Scope.CRON) == []
