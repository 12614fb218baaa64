"""What a sixth attack got past us, by real clients of MCP and with an agent's token: each a promise, on a real home."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attacking import PLANTED, told

from anima import Home, Scope
from anima.testing import Clock


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home.create(tmp_path / "aria", name="Aria", clock=Clock()) as made:
        yield made


# -- what comes back to a conversation of its own notes --------------------------------------------------------------------


@pytest.mark.parametrize("scope", [Scope.GROUP, Scope.CRON])
@pytest.mark.parametrize("known", ["noted by another", "forgotten by the owner"])
def test_what_a_conversation_noted_comes_back_whatever_others_noted_or_forgot(
    home: Home, scope: Scope, known: str
) -> None:
    if known == "noted by another":
        with home.session(scope=Scope.MAIN) as session:
            session.taint("web")
            session.call("memory_write", {"target": "memory", "content": PLANTED})
    else:
        home.remember(PLANTED)
        home.forget(text=PLANTED)
    found = []
    for line in (PLANTED, PLANTED.replace("new", "old")):
        with home.session(scope=scope) as session:
            answer = session.call("memory_write", {"target": "memory", "content": line})
            assert answer["status"] == "noted"
            found.append((session.noted() + session.after_compaction()).replace(line, ""))
    assert found[0] == found[1]


def test_a_persons_own_layer_does_not_tell_what_the_owner_had_forgotten(home: Home) -> None:
    home.remember("Karin is pregnant since March")
    home.forget(text="Karin is pregnant since March")
    found = []
    with home.session(scope=Scope.MAIN, channel="telegram", sender="666") as session:
        session.taint("web")
        for month in ("March", "April"):
            line = f"Karin is pregnant since {month}"
            session.call("memory_write", {"target": "memory", "content": line})
            found.append(line in session.noted())
            found.append(line in told(session, "memory_get", path="users/telegram.666/unreviewed/2026-05-08.md", lines=99))
    assert found == [True] * 4
