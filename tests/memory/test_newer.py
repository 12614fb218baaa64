"""What a newer anima wrote into the files of memory is refused where it would be used, and stays as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from anima import Home, NewerFormat, Scope
from anima.ledger import FORMAT
from anima.testing import Clock


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home.create(tmp_path / "aria", name="Aria", clock=Clock()) as home:
        home.remember("Something")
        yield home


def test_a_ledger_that_a_newer_anima_brought_up_to_date_takes_no_write(home: Home) -> None:
    home.site.store.append("format", {"format": FORMAT + 1})
    with Home.open(home.name, clock=Clock()) as again, pytest.raises(NewerFormat, match="ledger"):
        again.write("notes/new.md", "# New\n")
    assert not home.exists("notes/new.md")


def test_a_newer_proposal_is_neither_shown_nor_approved(home: Home) -> None:
    with home.session(scope=Scope.MAIN) as session:
        session.call("memory_write", {"target": "TOOLS.md", "content": "Ana moved"})
    [waiting] = home.inbox.all()
    file = Path(home.name, f".anima/pending/{waiting.id}.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 2}))

    with pytest.raises(NewerFormat, match="pending/"):
        home.inbox.approve(waiting.id, approver="terminal")
    assert file.exists() and "Ana moved" not in home.read("TOOLS.md").text


def test_a_newer_list_of_what_stays_forgotten_takes_no_write(home: Home) -> None:
    forgotten = Path(home.name, ".anima/forgotten")
    forgotten.write_text('{"format":2,"phrases":[]}')
    with Home.open(home.name, clock=Clock()) as again, pytest.raises(NewerFormat, match="forgotten"):
        again.write("notes/new.md", "# New\n")
    assert forgotten.read_text() == '{"format":2,"phrases":[]}'
