"""A fact that memory says already: whoever tells it again learns that it is known, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anima import Home, Scope
from anima.testing import Clock

FACT, AGAIN = "Ana uses a Samsung phone", "ana uses a samsung phone!"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home.create(tmp_path / "aria", name="Aria", clock=Clock()) as made:
        made.remember(FACT, section="People")
        yield made


def test_what_the_owner_remembers_twice_is_known_and_not_refused(home: Home) -> None:
    before, written = home.read("MEMORY.md").text, home.past.size()
    again = home.remember(AGAIN)

    assert (again.status, again.rule, again.change) == ("known", "duplicate", None)
    assert again.reason == f"MEMORY.md line 7 says so already: {FACT}"
    assert (home.read("MEMORY.md").text, home.past.size()) == (before, written)


def test_an_agent_is_told_the_same(home: Home) -> None:
    with home.session(scope=Scope.MAIN) as session:
        answer = session.call("memory_write", {"target": "memory", "content": AGAIN})

    assert (answer["status"], answer["rule"]) == ("known", "duplicate")
    assert answer["reason"] == f"MEMORY.md line 7 says so already: {FACT}"


def test_what_waits_or_is_hidden_is_not_known_to_who_does_not_see_it(home: Home) -> None:
    with home.session(scope=Scope.GROUP) as session:
        answer = session.call("memory_write", {"target": "memory", "content": AGAIN})

    assert answer["status"] != "known" and FACT not in str(answer)
