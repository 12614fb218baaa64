"""Calls of tools from outside that wait, where a server holds the conversation: a card, and a turn that goes on by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from speaking import choose
from starlette.testclient import TestClient

from anima import Home
from anima.testing import Clock
from anima.testing.models import ModelServer, Spoken
from errand import outfitted
from serving import Desk, Stream, running

SEND = ("errands__send_mail", {"to": "ana", "text": "The boat is ready"})


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with outfitted(tmp_path, reads=["read_mail"], vouched=True, scopes=["main"]) as home:
        yield home


def sent(home: Home) -> list[str]:
    file = Path(home.name).parent / "errands" / "sent"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def until(stream: Stream, kind: str) -> list[tuple[str, dict[str, Any]]]:
    found = [stream.next()[:2]]
    while found[-1][0] != kind:
        found.append(stream.next()[:2])
    return found


@pytest.mark.parametrize(("verb", "said"), [("approve", "She knows."), ("deny", "As you wish.")])
def test_a_decision_on_the_page_lets_the_conversation_go_on(home: Home, verb: str, said: str) -> None:
    desk = Desk(home, Clock())
    with ModelServer([Spoken("I write to her.", calls=[SEND]), Spoken(said)]) as server, running(desk.app) as port:
        choose(home, server)
        page: TestClient = desk.page
        begun = page.post("/api/v1/chat", json={"text": "Tell Ana."}).json()
        address = f"/api/v1/chat/{begun['id']}/events"
        stream = Stream(port, desk.keyring.owner_token(), after=begun["after"], path=address)
        first = until(stream, "done")
        (card,) = [data for kind, data in first if kind == "card"]
        assert (card["card"], card["path"]) == ("call", "errands__send_mail") and sent(home) == []
        assert "errands__send_mail" in page.get(f"/chat/{begun['id']}?part=cards").text
        content = page.get(f"/api/v1/pending/{card['id']}").json()["content"]
        body = {"content": content} if verb == "approve" else None
        assert page.post(f"/api/v1/pending/{card['id']}/{verb}", json=body).status_code in (200, 204)
        second = until(stream, "done")
        stream.close()

    assert "".join(data["text"] for kind, data in second if kind == "delta") == said
    assert [data["text"] for kind, data in second if kind == "turn"] == [""]
    assert sent(home) == (["ana: The boat is ready"] if verb == "approve" else [])


def test_a_program_is_told_that_a_call_waits_and_decides_nothing(home: Home) -> None:
    desk = Desk(home, Clock())
    with ModelServer([Spoken("I write to her.", calls=[SEND])]) as server, running(desk.app) as port:
        choose(home, server)
        asked = {"messages": [{"role": "user", "content": "Tell Ana."}]}
        told = desk.agent("main").post("/v1/chat/completions", json=asked).json()

    assert port and told["choices"][0]["message"]["content"].endswith("(It waits for a yes of the owner's.)")
    assert sent(home) == [] and len(home.inbox.all()) == 1
