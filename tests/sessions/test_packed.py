"""Transcripts of a home on a server are found as those of a folder are, by whichever process is asked."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_talks import Place

from anima.gate.scan import redact
from anima.search.tables import Tables
from anima.sessions.packed import PackedTranscripts, second_tables
from anima.sessions.record import Transcript
from anima.sessions.replay import Asker
from anima.store.rows import find_home
from anima.testing.tables import MemoryTables
from conftest import Cluster

WORDS = "boat roof zebra grün 猫が好き walks walked tea five sold #blue don't".split()
ASKERS = [Asker(agent="kate"), Asker(agent=None, layers=None), Asker(agent="kate", scopes=frozenset({"group"}))]
QUERIES = [
    "boat",
    "boat zebra",
    "walking",
    "tea five sold",
    "nothing boat",
    "…",
    "!? .",
    "",
    "猫",
    "roof nowhere never",
]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    yield found
    found.close()


@pytest.fixture(params=["memory", "postgres"])
def tables(request: pytest.FixtureRequest) -> Tables:
    if request.param == "memory":
        return MemoryTables()
    cluster: Cluster = request.getfixturevalue("cluster")
    request.getfixturevalue("sealed")
    home = find_home(cluster.application, tenant=cluster.new_tenant(), agent=None, env=os.environ, create=True)
    return second_tables(home.rows)


def alike(place: Place, packed: PackedTranscripts) -> None:
    """Every answer of both, for every asker."""
    for asker in ASKERS:
        assert packed.rows(place.folder, asker) == place.index.rows(place.folder, asker)
        assert packed.rows(place.folder, asker, 2).total == place.index.rows(place.folder, asker, 2).total
        for query in QUERIES:
            one, other = place.ask(query, asker=asker, limit=7), packed.find(place.folder, query, asker, limit=7)
            assert other.hits == one.hits, (query, asker)
            assert not other.notes


def test_any_sessions_are_listed_and_found_alike_while_they_grow_and_are_forgotten(
    place: Place, tables: Tables
) -> None:
    roll, packed = random.Random(7), PackedTranscripts(tables, redact=redact)
    alike(place, packed)
    for n in range(8):
        scope, layer = roll.choice(["main", "group"]), roll.choice(["", "ana"])
        said = [" ".join(roll.choices(WORDS, k=4)) + " …" for _ in range(roll.choice([0, 1, 5, 40, 90]))]
        place.say(f"s{n}", *said, agent=roll.choice(["kate", "luis"]), scope=scope, layer=layer)
    alike(place, packed)
    for id in ("s1", "s2", "s1", "s7"):
        talk = Transcript.resume(place.folder, id, clock=place.clock, redact=redact)
        for _ in range(roll.choice([1, 3, 40])):
            talk.log("assistant", " ".join(roll.choices(WORDS, k=5)))
        talk.close()
        alike(place, packed)
    place.folder.drop("s3")
    alike(place, packed)
    assert [hit.session_id for hit in packed.find(place.folder, "boat", ASKERS[1]).hits].count("s3") == 0


def test_what_one_server_took_in_no_other_reads_again(place: Place, tables: Tables) -> None:
    place.say("one", "the boat is sold")
    assert PackedTranscripts(tables, redact=redact).refresh(place.folder) == 1
    other = PackedTranscripts(tables, redact=redact)

    assert other.refresh(place.folder) == 0
    assert [hit.preview for hit in other.find(place.folder, "boat", ASKERS[0]).hits] == ["the boat is sold"]


def test_many_small_additions_leave_few_parts(place: Place, tables: Tables) -> None:
    packed, talk = PackedTranscripts(tables, redact=redact), place.begin("long")
    for n in range(70):
        talk.log("user", f"boat {n}")
        packed.refresh(place.folder)
    talk.close()

    _, held = packed._index.held()[0].parts_of(f"{place.folder.name}/long")
    assert [part.units for part in held] == [32, 32, 6]
    assert packed.find(place.folder, "69", ASKERS[0]).hits[0].entry == 69


def test_where_the_tables_are_away_nothing_is_found_and_it_is_said(place: Place) -> None:
    tables = MemoryTables()
    packed = PackedTranscripts(tables, redact=redact)
    place.say("one", "the boat is sold")
    tables.is_down = True

    found = packed.find(place.folder, "boat", ASKERS[0])
    assert not found.hits and found.notes
    assert packed.get(place.folder, "one") == place.index.get(place.folder, "one")
    tables.is_down = False
    assert packed.find(place.folder, "boat", ASKERS[0]).hits
