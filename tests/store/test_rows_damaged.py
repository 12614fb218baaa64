"""What somebody did to a home by SQL is found by its name, and neither looking nor asking for a repair changes a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import anima
from anima import BadConfig, Home, Scope, restore
from conftest import Cluster

ALL = "tenant = %(tenant)s and home = %(home)s"
FILE = f"update anima.file set body = %(body)s, size = length(%(body)s) where {ALL} and path like %(path)s"
DAMAGES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a record is altered": (
        "ledger-damaged",
        f"update anima.record set line = overlay(line placing 'x'::bytea from 12) where {ALL} and n = 5",
        {},
    ),
    "the end of the chain is cut off": ("ledger-damaged", f"delete from anima.record where {ALL} and n > 6", {}),
    "the ledger is gone": (
        "ledger-missing",
        f"with gone as (delete from anima.record where {ALL}) update anima.home set records = 0, bytes = 0 where {ALL}",
        {},
    ),
    "a version is altered": (
        "history-damaged",
        f"update anima.version set body = 'x' where {ALL} and path = 'a.md'",
        {},
    ),
    "a revision is gone": ("history-damaged", f"delete from anima.revision where {ALL} and n = 2", {}),
    "a document is no text": ("document-not-text", FILE, {"path": "a.md", "body": b"\xff\xfe"}),
    "a wish cannot be read": ("proposal-broken", FILE, {"path": ".anima/pending/%", "body": b"{"}),
    "the list of what is forgotten cannot be read": (
        "forgotten-broken",
        FILE,
        {"path": ".anima/forgotten", "body": b"?"},
    ),
    "the configuration cannot be read": ("config-broken", FILE, {"path": "anima.toml", "body": b"[["}),
    "a document was written to": ("", FILE, {"path": "a.md", "body": b"# A\n\n- by SQL\n"}),
}


@pytest.fixture
def home(cluster: Cluster, sealed: str) -> Iterator[tuple[str, dict[str, int]]]:
    tenant = cluster.new_tenant()
    place = f"{cluster.application}#{tenant}"
    with Home.create(place, name="Aria") as home:
        home.write("a.md", "# A\n\n- Ana lives in Bogota.\n")
        home.remember("the boat is blue")
        home.forget(text="the boat is blue")
        with home.session(scope=Scope.MAIN) as session:
            session.taint("web")
            session.call("memory_write", {"content": "# Soul\n\nBe bold.\n", "target": "soul"})
        rows = home.site.store.rows  # type: ignore[attr-defined]
    yield place, {"tenant": rows.tenant, "home": rows.home}


def every_row(cluster: Cluster, own: dict[str, int]) -> list[Any]:
    with psycopg.connect(cluster.owner) as db:
        tables = ("file", "record", "head", "revision", "version", "line")
        return [db.execute(f"select * from anima.{name} where {ALL} order by 3, 4", own).fetchall() for name in tables]


def test_a_home_that_nobody_touched_has_nothing_to_say(home: tuple[str, dict[str, int]]) -> None:
    assert [found for found in anima.doctor(home[0]).found if found.level == "damage"] == []


@pytest.mark.parametrize("what", DAMAGES)
def test_what_was_done_by_sql_is_found_and_nothing_is_changed(
    home: tuple[str, dict[str, int]], cluster: Cluster, what: str
) -> None:
    place, own = home
    name, sql, given = DAMAGES[what]
    with psycopg.connect(cluster.owner) as db:
        assert db.execute(sql, {**own, **given}).rowcount
    before = every_row(cluster, own)
    found = anima.doctor(place).found
    if name:
        assert name in {remark.name for remark in found}, found
    else:
        assert "somebody wrote to the database" in " ".join(each.message for each in found if each.about == "a.md")
    asked = anima.doctor(place, repair=True)
    assert asked.done == () and {each.name for each in asked.left} == {each.name for each in found}
    assert every_row(cluster, own) == before


def test_a_home_whose_configuration_cannot_be_read_is_restored(
    home: tuple[str, dict[str, int]], cluster: Cluster
) -> None:
    place, own = home
    with Home.open(place) as opened:
        kept = opened.snapshots.take()
    _, sql, given = DAMAGES["the configuration cannot be read"]
    with psycopg.connect(cluster.owner) as db:
        db.execute(sql, {**own, **given})
    with pytest.raises(BadConfig):
        Home.open(place)
    assert restore(kept.path, place).changed == ("anima.toml",)
    with Home.open(place) as opened:
        assert opened.past.audit().ok and opened.read("a.md").text.endswith("Bogota.\n")
