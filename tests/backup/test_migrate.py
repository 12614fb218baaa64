"""A home moves from any kind of store to any other, and nothing of it is lost; killed half-way, it is moved again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from anima import Home, Scope
from anima.cli import run
from anima.errors import Damaged, Refused
from anima.home.folders import migrate
from owning import as_owner


@pytest.fixture
def places(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    cluster, _ = request.getfixturevalue("cluster"), request.getfixturevalue("sealed")
    address = f"{cluster.application}#{cluster.new_tenant()}"
    return {"folder": str(tmp_path / "folder"), "file": f"file:{tmp_path}/home.db", "postgres": address}


def lived(place: str) -> None:
    with Home.create(place, name="Aria") as home:
        for n in range(25):  # more than one whole version
            home.write("a.md", f"# A\n\n- version {n}\n- stays\n")
        home.remember("Ana lives in Bogota.")
        home.write("gone.md", "- soon\n")
        home.delete("gone.md")
        with home.session(scope=Scope.MAIN) as session:
            session.log("user", "I keep bees")
            session.call("memory_write", {"content": "# Soul\n\nBe bold.\n", "target": "soul"})


def seen(place: str) -> object:
    with Home.open(place) as home:
        return (
            {entry.path: home.read(entry.path).text for entry in home.list_all() if entry.path.endswith(".md")},
            [(revision.subject, revision.paths, revision.time) for revision in home.past.log(limit=100)],
            [record.hash for record in home.site.store.ledger.records()],
            [proposal.id for proposal in home.inbox.all()],
            [hit.preview for hit in home.sessions.find("bees").hits],
            home.past.audit().ok,
            home.past.history_problems(),
        )


@pytest.mark.parametrize("way", ["folder file", "file postgres folder", "postgres file", "folder postgres"])
def test_a_home_moves_whole_and_goes_on(places: dict[str, str], way: str, tmp_path: Path) -> None:
    kinds = way.split()
    lived(places[kinds[0]])
    before = seen(places[kinds[0]])
    for source, target in pairwise(kinds):
        done = migrate(places[source], places[target])
        assert done.records > 50 and done.revisions > 25 and not done.was_there
        assert seen(places[target]) == before
    last = places[kinds[-1]]
    with Home.open(last) as home:
        assert home.is_vouched_for and home.write("a.md", "# A\n\n- after\n").status == "written"
        assert home.past.audit().ok
        home.undo()
        assert "version 24" in home.read("a.md").text


def test_a_home_is_moved_over_itself_and_over_nobody_else(tmp_path: Path) -> None:
    first, second = str(tmp_path / "first"), f"file:{tmp_path}/second.db"
    lived(first)
    migrate(first, second)
    assert migrate(first, second).was_there
    with Home.open(first) as home:
        home.write("b.md", "- later\n")
    assert not migrate(first, second).was_there and seen(second) == seen(first)
    with Home.open(second) as home:
        home.write("c.md", "- went on\n")
    before = seen(second)
    with pytest.raises(Refused, match="written to since"):
        migrate(first, second)
    Home.create(tmp_path / "other", name="Bo").close()
    with pytest.raises(Refused, match="another home"):
        migrate(first, tmp_path / "other")
    assert seen(second) == before
    migrate(second, first)  # the other way it is only later
    assert seen(first) == before


def test_what_differs_afterwards_is_said(tmp_path: Path) -> None:
    from anima.backup.restore import compared

    lived(str(tmp_path / "first"))
    migrate(tmp_path / "first", f"file:{tmp_path}/second.db")
    with Home.open(tmp_path / "first") as old, Home.open(f"file:{tmp_path}/second.db") as new:
        old.append("a.md", "- meanwhile\n")
        with pytest.raises(Damaged, match="differs"):
            compared(old.site.store, new.site.store)


_MOVE = """
import os, sys
from anima.home import folders
steps = [0]
def progress(done, total):
    steps[0] += 1
    if steps[0] == int(sys.argv[3]):
        os.kill(os.getpid(), 9)
folders.migrate(sys.argv[1], sys.argv[2], progress=progress)
"""


@pytest.mark.parametrize("step", [1, 12, 40])
def test_killed_at_any_point_it_can_be_run_again(tmp_path: Path, step: int) -> None:
    first, second = str(tmp_path / "first"), f"file:{tmp_path}/second.db"
    lived(first)
    before = seen(first)
    died = subprocess.run([sys.executable, "-c", _MOVE, first, second, str(step)])
    assert died.returncode == -9
    migrate(first, second)
    assert seen(first) == seen(second) == before


def test_the_command_tells_what_is_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lived(str(tmp_path / "first"))
    words = ("migrate", tmp_path / "first", f"file:{tmp_path}/second.db")
    assert run(as_owner(*words, "--json")) == 0
    assert json.loads(capsys.readouterr().out)["records"] > 50
    assert run(as_owner(*words)) == 0
    assert "stood there already" in capsys.readouterr().out


def test_a_folder_that_anima_only_read_moves_too(example: Callable[[str], Path], tmp_path: Path) -> None:
    folder = example("carapace")
    with Home.open(folder, settings={"dialect": "carapace"}) as home:
        home.past.log()
    done = migrate(folder, f"file:{tmp_path}/second.db")
    assert done.revisions == 0 and done.files
    with Home.open(f"file:{tmp_path}/second.db") as moved:
        assert moved.read("memory/CORE.md").text == (folder / "memory/CORE.md").read_text()
