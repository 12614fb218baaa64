"""A home in PostgreSQL, or in one file, does what a home in a folder does: every verb, and the same is seen in both."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import anima
from anima import Home, Scope
from anima.errors import BadArguments, BadConfig, HomeError, NoSuchHome, Refused
from anima.testing import Clock
from anima.testing.embedder import MockEmbedder
from conftest import Cluster

WORDS = "Ana lives in Bogota with a cat called Mango"


def made(place: str | Path, **more: Any) -> Home:
    """A home whose clock and dice are those of every other one in this file."""
    return Home.create(
        place, name="Aria", clock=Clock(), dice=random.Random(7), embedder=MockEmbedder(), env=os.environ, **more
    )


@pytest.fixture(params=["postgres", "file"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Home, Home]:
    if request.param == "file":
        return made(tmp_path / "folder"), made(f"file:{tmp_path}/home.db")
    cluster, _ = request.getfixturevalue("cluster"), request.getfixturevalue("sealed")
    return made(tmp_path / "folder"), made(cluster.application, tenant=cluster.new_tenant())


@pytest.fixture
def tenant(cluster: Cluster, sealed: str) -> str:
    return cluster.new_tenant()


def both(pair: tuple[Home, Home], see: Callable[[Home], object]) -> object:
    """What is seen in both homes, which is the same."""
    in_folder, in_database = map(see, pair)
    assert in_database == in_folder
    return in_database


def texts(home: Home) -> dict[str, str]:
    return {entry.path: home.read(entry.path).text for entry in home.list_all() if entry.path.endswith(".md")}


# -- the road in, and back ------------------------------------------------------------------------------------------------


def test_writing_verbs_leave_the_same_documents_and_history(pair: tuple[Home, Home]) -> None:
    def live(home: Home) -> object:
        told = [
            home.remember(f"{WORDS}.").status,
            home.note("had tea").status,
            home.write("projects/garden.md", "# Garden\n\n- tomatoes\n").status,
            home.append("projects/garden.md", "- beans\n").status,
            home.edit("projects/garden.md", "tomatoes", "potatoes").status,
            home.move("projects/garden.md", "projects/plot.md").status,
            home.write("gone.md", "x\n").status,
            home.delete("gone.md").status,
        ]
        home.past.commit()
        undone = [receipt.status for receipt in home.undo()]
        revisions = [(r.subject, r.actor, r.paths, r.time) for r in home.past.log(limit=50)]
        return told, undone, texts(home), revisions, home.past.audit().ok, home.past.why("projects/plot.md", 3).sentence

    assert both(pair, live)


def test_the_ledgers_of_both_say_the_same(pair: tuple[Home, Home]) -> None:
    def live(home: Home) -> object:
        home.remember("tea at four")
        home.write("a.md", "one\n")
        home.append("a.md", "two\n")
        return [(record.n, record.kind, record.fields.get("what")) for record in home.site.store.ledger.records()]

    assert both(pair, live)


def test_a_session_writes_asks_and_is_found_again(pair: tuple[Home, Home]) -> None:
    def live(home: Home) -> object:
        with home.session(scope=Scope.MAIN) as session:
            session.log("user", "I keep bees behind the house")
            called = session.call("memory_write", {"content": "keeps bees", "target": "memory"})
            asked = session.call("memory_write", {"content": "# Soul\n\nBe bold.\n", "target": "soul"})
            id = session.id
        for proposal in home.inbox.all():
            home.inbox.approve(proposal.id, approver="ana")
        found = home.sessions.find("bees")
        rows = [(row.id, row.summary, row.entries, row.closed) for row in home.sessions.list()]
        with home.resume(id) as again:
            again.log("assistant", "Bees it is.")
        said = [turn.content.partition("revision: ")[0] for turn in home.sessions.read(id).entries]
        page = [re.sub(r"\bp[0-9a-f]{12}\b", "…", each) for each in said]  # ids are the store's
        return called.keys(), asked.keys(), rows, [hit.preview for hit in found.hits], page, texts(home)

    assert both(pair, live)


def test_search_gives_the_same_hits_to_the_bit(pair: tuple[Home, Home]) -> None:
    def live(home: Home) -> object:
        for n in range(40):
            home.write(f"notes/{n:02}.md", f"# Note {n}\n\n- {WORDS} since {2000 + n}\n- the cat {n} sleeps\n")
        answers = [home.search(asked, scope=Scope.MAIN, limit=50) for asked in ("cat", "Bogota 2011", "who sleeps?")]
        return [[(hit.path, hit.start_line, hit.score, hit.text) for hit in answer.hits] for answer in answers]

    assert both(pair, live)


def test_forgetting_leaves_nothing_of_it_in_documents_transcripts_or_history(pair: tuple[Home, Home]) -> None:
    def live(home: Home) -> object:
        home.remember(f"{WORDS}.")
        home.remember("The bicycle is blue.")
        with home.session(scope=Scope.MAIN) as session:
            session.log("user", "Mango is my cat")
        done = home.forget(text="Mango", purge=True)
        home.past.commit()
        held = [data for _, _, data in home.site.store.history.versions()]  # type: ignore[union-attr]
        found = home.sessions.find("Mango").hits  # what it was is gone
        return (
            done.done,
            len(done.left),
            texts(home),
            any(b"Mango" in data for data in held),
            found,
            home.past.audit().ok,
        )

    seen = both(pair, live)
    assert "Mango" not in repr(seen)


def test_dreaming_tidying_and_figures_go_on(pair: tuple[Home, Home]) -> None:
    def live(home: Home) -> object:
        for day in range(3):
            home.note(f"{WORDS}, said again on day {day}")
            home.clock.forward(days=1)  # type: ignore[attr-defined]
        home.search("cat", scope=Scope.MAIN)
        sweep, figures = home.dream(), home.upkeep.numbers()
        home.backfill()
        return (
            sweep.status,
            sweep.diff,
            figures,
            [remark.level for remark in home.upkeep.doctor() if remark.level == "damage"],
        )

    assert both(pair, live)


def test_a_home_without_any_note_dreams_too(pair: tuple[Home, Home]) -> None:
    assert both(pair, lambda home: home.dream().status)


def test_the_prompt_is_the_same_byte_for_byte(pair: tuple[Home, Home]) -> None:
    pair[0].remember("Ana likes tea."), pair[1].remember("Ana likes tea.")
    for scope in Scope:
        assert pair[1].prompt(scope=scope).text == pair[0].prompt(scope=scope).text


# -- whole homes ----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["postgres", "file"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a home in a database can be made."""
    if request.param == "file":
        return f"file:{tmp_path}/home.db"
    cluster, _ = request.getfixturevalue("cluster"), request.getfixturevalue("sealed")
    return f"{cluster.application}#{cluster.new_tenant()}"


def test_a_snapshot_moves_from_a_folder_to_a_database_and_back(address: str, tmp_path: Path) -> None:
    with made(tmp_path / "first") as home:
        home.remember(f"{WORDS}.")
        home.write("a.md", "one\n")
        home.write("a.md", "two\n")
        with home.session(scope=Scope.MAIN) as session:
            session.log("user", "hello there")
        archive = home.snapshots.take(to=tmp_path / "first.tar.gz").path
        before = texts(home), [r.subject for r in home.past.log()], [r.hash for r in home.site.store.ledger.records()]
    anima.restore(archive, address, other=True, clock=Clock())
    with Home.open(address, clock=Clock()) as moved:
        there = texts(moved), [r.subject for r in moved.past.log()], [r.hash for r in moved.site.store.ledger.records()]
        assert there == before
        assert moved.past.audit().ok and not moved.past.history_problems()
        assert [hit.preview for hit in moved.sessions.find("hello").hits] == ["hello there"]
        moved.write("a.md", "three\n")
        back = moved.snapshots.take(to=tmp_path / "back.tar.gz").path
    anima.restore(back, tmp_path / "second", clock=Clock())
    with Home.open(tmp_path / "second", clock=Clock()) as home:
        assert home.read("a.md").text == "three\n" and home.past.audit().ok
        assert len(home.past.log("a.md")) == 3 and not home.past.history_problems()


def test_a_restore_takes_everything_back_and_tells_homes_that_are_open(address: str) -> None:
    with made(address) as home:
        home.write("a.md", "one\n")
        kept = home.snapshots.take().path
        home.write("a.md", "two\n")
        home.write("b.md", "new\n")
        done = anima.restore(kept, address, clock=Clock())
        assert done.before is not None
        with pytest.raises(Refused, match="restored"):
            home.write("a.md", "three\n")
    with Home.open(address) as again:
        assert again.read("a.md").text == "one\n" and not again.exists("b.md")
        assert again.past.audit().ok and not again.past.history_problems()
        assert again.write("a.md", "three\n").status == "written"


def test_export_and_import_carry_documents_both_ways(pair: tuple[Home, Home], tmp_path: Path) -> None:
    def live(home: Home) -> object:
        home.remember(f"{WORDS}.")
        place = tmp_path / home.site.store.identity
        home.export(place)
        return sorted(str(path.relative_to(place)) for path in place.rglob("*.md"))

    assert both(pair, live)
    exported = tmp_path / pair[0].site.store.identity
    assert pair[1].import_directory(exported, mine=True)


def test_the_first_that_an_empty_home_is_given_go_to_their_places(address: str, tmp_path: Path) -> None:
    (tmp_path / "from" / "memory").mkdir(parents=True)
    (tmp_path / "from" / "memory" / "2026-05-01.md").write_text("# 2026-05-01\n\n- Ana keeps bees\n")
    with Home.open(address, create=True, clock=Clock(), embedder=MockEmbedder()) as home:
        assert home.import_directory(tmp_path / "from").copied == ("memory/2026-05-01.md",)
        assert [hit.path.text for hit in home.search("bees", scope=Scope.MAIN)] == ["memory/2026-05-01.md"]
        (tmp_path / "from" / "more.md").write_text("- Ben keeps hens\n")
        assert home.import_directory(tmp_path / "from").copied != ("more.md",)  # from now on it waits for the owner


# -- opening --------------------------------------------------------------------------------------------------------------


def test_nobody_is_a_tenant_by_default(cluster: Cluster, sealed: str, tenant: str) -> None:
    with pytest.raises(NoSuchHome, match="no tenant"):
        Home.open(cluster.application, tenant="nobody")
    with pytest.raises(BadArguments, match="none is named"):
        Home.open(cluster.application)
    with pytest.raises(NoSuchHome, match="no agent"):
        Home.open(cluster.application, tenant=tenant)
    with Home.open(cluster.application, tenant=tenant, create=True) as home:
        assert home.list_all() == ()
        assert "postgresql://" in home.name and "anima_app" not in home.name


def test_a_folder_has_no_tenant(tmp_path: Path) -> None:
    with pytest.raises(BadArguments, match="no tenants"):
        Home.open(tmp_path, tenant="acme")


def test_the_address_of_the_environment_is_taken_where_no_path_is_given(
    cluster: Cluster, sealed: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", cluster.application)
    monkeypatch.setenv("ANIMA_TENANT", tenant)
    with Home.create(name="Aria") as made, Home.open(agent=None) as opened:
        assert made.site.store.identity == opened.site.store.identity
    monkeypatch.delenv("DATABASE_URL")
    with pytest.raises(BadArguments):
        Home.open()


def test_each_agent_of_a_tenant_has_a_home_of_its_own(cluster: Cluster, sealed: str, tenant: str) -> None:
    with (
        Home.open(cluster.application, tenant=tenant, agent="one", create=True) as one,
        Home.open(cluster.application, tenant=tenant, agent="two", create=True) as two,
    ):
        one.write("a.md", "mine\n")
        assert not two.exists("a.md")


def test_a_role_that_could_see_everybody_is_not_served(cluster: Cluster, sealed: str, tenant: str) -> None:
    with pytest.raises(Refused) as caught:
        Home.open(cluster.owner, tenant=tenant)
    assert caught.value.rule == "bypasses-row-security"


def test_without_the_key_that_sealed_it_a_home_is_not_written(
    cluster: Cluster, sealed: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Home.open(cluster.application, tenant=tenant, create=True) as home:
        home.write("a.md", "one\n")
    monkeypatch.setenv("ANIMA_KEY", "another key that is long enough to be one")
    with Home.open(cluster.application, tenant=tenant) as home, pytest.raises(HomeError, match="sealed"):
        home.write("a.md", "two\n")
    monkeypatch.delenv("ANIMA_KEY")
    with pytest.raises(BadConfig):
        Home.open(cluster.application, tenant=tenant)
