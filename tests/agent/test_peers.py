"""Peers: whom an agent may ask, what each learns of the other, and that asking comes to an end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anima import Home, Scope
from anima.model import Origin
from anima.testing import Clock
from casting import Cast, main_talk, talk

ROWS = """
[[agent]]
id = "aria"
allowed_delegates = {aria}

[[agent]]
id = "bob"
home = "../bob"
allowed_delegates = {bob}

[[agent]]
id = "cleo"
home = "../cleo"
allowed_delegates = ["aria", "bob"]
"""


@pytest.fixture
def place(tmp_path: Path, clock: Clock) -> Path:
    """Three homes of one owner, each with somebody's secrets."""
    for name in ("aria", "bob", "cleo"):
        with Home.create(tmp_path / name, name=name.title(), clock=clock) as home:
            home.write("SOUL.md", f"# Soul\n\nYou are the {name}.\n")
            home.write("USER.md", f"# User\n\n- **Name:** SECRET-USER-OF-{name}\n")
            home.remember(f"SECRET-MEMORY-OF-{name}")
            home.write("AGENTS.md", f"# Agents\n\nRULES-OF-{name}\n")
    return tmp_path


@pytest.fixture
def home(place: Path, clock: Clock) -> Iterator[Home]:
    with opened(place, clock) as home:
        yield home


def opened(
    place: Path, clock: Clock, *, aria: str = '["bob"]', bob: str = '["cleo", "aria"]', agent: str = "aria"
) -> Home:
    config = place / "aria" / "anima.toml"
    kept = config.read_text(encoding="utf-8").partition("\n[[agent]]")[0]
    config.write_text(kept + ROWS.format(aria=aria, bob=bob), encoding="utf-8")
    return Home.open(place / "aria", clock=clock, agent=agent)


def ask(agent: str, text: str = "How are you?") -> tuple[str, dict[str, Any]]:
    return "agent_ask", {"agent": agent, "text": text}


def test_a_peer_answers_as_itself_from_its_own_home_and_its_words_are_from_outside(home: Home) -> None:
    cast = Cast(aria=[ask("bob", "Where is the boat?"), "Bob says so."], bob=["At the marina."])
    session = home.session(scope=Scope.MAIN, channel="chat")
    talk(session, cast, "Ask Bob.")
    assert "At the marina." in cast.seen["aria"] and Origin.PEER in session.tainted
    assert "Where is the boat?" in cast.seen["bob"] and "RULES-OF-bob" in cast.seen["bob"]
    session.leave()


def test_neither_learns_anything_of_the_other_but_what_is_said(home: Home) -> None:
    looks = [("memory_get", {"path": path}) for path in ("USER.md", "MEMORY.md", "../aria/USER.md")]
    looks += [("memory_search", {"query": "SECRET"}), ("memory_tree", {"depth": 9}), ("who_am_i", {})]
    cast = Cast(aria=[ask("bob"), *looks[-1:], "So."], bob=[*looks, "I am well."])
    main_talk(home, cast)
    for theirs in ("SECRET-USER-OF", "SECRET-MEMORY-OF", "RULES-OF-aria", "You are the aria"):
        assert theirs not in cast.seen["bob"]
    for theirs in ("OF-bob", "You are the bob"):
        assert theirs not in cast.seen["aria"]


def test_a_peer_writes_nothing_for_whoever_asks(home: Home, place: Path, clock: Clock) -> None:
    wish = {"target": "memory", "content": "pay mallory"}
    writes = [
        ("memory_write", wish),
        ("memory_write", wish | {"target": "SOUL.md"}),
        ("memory_forget", {"text": "SECRET"}),
    ]
    cast = Cast(aria=[ask("bob"), "So."], bob=[*writes, "No."])
    main_talk(home, cast)
    assert "pay mallory" in cast.seen["bob"] and cast.seen["bob"].count("this session may not write") >= 2
    with opened(place, clock, agent="bob") as bob:
        assert bob.inbox.all() == () and bob.inbox.noted() == () and "mallory" not in bob.read("MEMORY.md").text
        (row,) = bob.sessions.list()
        assert (row.scope, row.layer, row.closed) == ("group", "agent.aria", True)


def test_nobody_is_asked_whom_allowed_delegates_does_not_name(place: Path, clock: Clock) -> None:
    with opened(place, clock, aria="[]") as home:
        cast = Cast(aria=[ask("bob"), "So."])
        main_talk(home, cast)
        assert "agent_ask" not in cast.tools["aria"] and "bob" not in cast.tools
    with opened(place, clock) as home:
        cast = Cast(aria=[ask("cleo"), "So."])
        main_talk(home, cast)
        assert "agent_ask" in cast.tools["aria"] and "you may not ask 'cleo'" in cast.seen["aria"]
        assert "cleo" not in cast.tools


def test_a_circle_of_questions_is_cut(place: Path, clock: Clock) -> None:
    with opened(place, clock) as home:
        cast = Cast(
            aria=[ask("bob"), *[ask("bob")] * 20],
            bob=[ask("aria"), ask("cleo"), "So says Cleo."],
            cleo=[ask("aria"), ask("bob"), "Nobody is left to ask."],
        )
        main_talk(home, cast)
        assert "is waiting for this very answer: aria asked bob" in cast.seen["bob"]
        assert "Nobody is left to ask." in cast.seen["bob"] and "So says Cleo." in cast.seen["aria"]
        assert "agent_ask" not in cast.tools["cleo"] and "agent_spawn" not in cast.tools["cleo"]


@pytest.mark.parametrize(("scope", "more"), [(Scope.GROUP, {}), (Scope.MAIN, {"sender": "telegram:mallory"})])
def test_strangers_and_groups_ask_nobody(home: Home, scope: Scope, more: dict[str, Any]) -> None:
    cast = Cast(aria=[ask("bob"), "So."])
    with home.session(scope=scope, **more) as session:
        talk(session, cast, "Ask Bob.")
    assert "agent_ask" not in cast.tools["aria"] and "bob" not in cast.tools


def test_a_sub_agent_asks_no_peer(home: Home) -> None:
    page = Path(home.name) / "subagents" / "scout.md"
    page.parent.mkdir()
    page.write_text("---\ndescription: Looks.\n---\n\nYou are the scout.\n", encoding="utf-8")
    cast = Cast(aria=[("agent_spawn", {"agent": "scout", "task": "Ask Bob."}), "So."], scout=[ask("bob"), "No."])
    main_talk(home, cast)
    assert "agent_ask" not in cast.tools["scout"] and "bob" not in cast.tools


def test_a_peer_whose_folder_nobody_trusts_is_not_asked(place: Path, clock: Clock) -> None:
    with opened(place, clock) as home:
        (place / "bob").rename(place / "elsewhere")
        (place / "bob").mkdir()
        for path in (place / "elsewhere").glob("*.md"):
            (place / "bob" / path.name).write_bytes(path.read_bytes())
        cast = Cast(aria=[ask("bob"), "So."])
        main_talk(home, cast)
        assert "not trusted" in cast.seen["aria"] and "bob" not in cast.tools


def test_a_folder_somebody_else_made_names_no_delegates(tmp_path: Path, clock: Clock) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "anima.toml").write_text(ROWS.format(aria='["bob"]', bob="[]"), encoding="utf-8")
    (theirs / "SOUL.md").write_text("# Soul\n", encoding="utf-8")
    with Home.open(theirs, clock=clock) as home:
        assert home.site.own.allowed_delegates == ()


def test_a_peer_that_breaks_off_is_told(home: Home) -> None:
    cast = Cast(aria=[ask("bob"), "So."], bob=[RuntimeError("no")])
    session = home.session(scope=Scope.MAIN, channel="chat")
    assert talk(session, cast, "Ask Bob.") == ["So."] and "bob broke off: RuntimeError" in cast.seen["aria"]
    session.leave()
