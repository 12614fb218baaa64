"""What a server of many homes asks its database: credentials that no role but the owner's can read."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from anima import Home, restore
from anima.cli import run
from anima.home.folders import fleet
from anima.store.rows.tenants import Fleet
from conftest import Cluster

psycopg = pytest.importorskip("psycopg")


class Owner:
    """Whoever owns the database, at their command line."""

    def __init__(self, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
        self._cluster, self._capsys, self.tenant = cluster, capsys, f"acme{os.urandom(4).hex()}"
        self("create", self.tenant)

    def __call__(self, *words: str, code: int = 0) -> Any:
        self._capsys.readouterr()
        assert run(["tenant", *words, "--home", self._cluster.owner, "--as-owner", "--json"]) == code
        return json.loads(self._capsys.readouterr().out)

    def token(self, *options: str) -> dict[str, Any]:
        made: dict[str, Any] = self("token", "create", self.tenant, *options)
        return made


@pytest.fixture
def owner(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Owner:
    return Owner(cluster, capsys)


@pytest.fixture
def asked(cluster: Cluster) -> Fleet:
    return fleet(cluster.application)


def found(asked: Fleet, secret: str) -> dict[str, Any] | None:
    return asked.credential(digest=hashlib.sha256(secret.encode()).digest())


def test_a_token_is_found_by_its_digest_with_tenant_agent_scope_and_rights(owner: Owner, asked: Fleet) -> None:
    own, agents = owner.token("--called", "ana"), owner.token("--rights", "read", "--scope", "group", "--agent", "bo")
    row, other = found(asked, own["token"]), found(asked, agents["token"])

    assert row and (row["tenant_name"], row["agent"], row["kind"], row["name"]) == (
        owner.tenant,
        "main",
        "owner",
        "ana",
    )
    assert other and (other["agent"], other["kind"], other["scope"], other["access"]) == ("bo", "agent", "group", "ro")
    assert found(asked, own["token"][:-1] + "x") is None and found(asked, "") is None
    listed = owner("token", "list", owner.tenant)
    assert [each["id"] for each in listed] == [own["id"], agents["id"]]
    assert own["token"] not in json.dumps(listed) and "digest" not in json.dumps(listed)


def test_a_token_that_is_rotated_keeps_its_id_and_the_one_before_works_as_long_as_was_said(
    owner: Owner, asked: Fleet
) -> None:
    made = owner.token()
    second = owner("token", "rotate", owner.tenant, made["id"], "--grace", "1")
    assert second["id"] == made["id"] and second["token"] != made["token"]
    old, new = found(asked, made["token"]), found(asked, second["token"])
    assert (
        old and new and old["expires"] < new["expires"]
    )  # who comes with the old one is let in no longer than it counts
    third = owner("token", "rotate", owner.tenant, made["id"])
    assert found(asked, third["token"])
    assert not found(asked, made["token"]) and not found(asked, second["token"])


def test_with_a_token_that_is_revoked_goes_whatever_was_made_with_it(owner: Owner, asked: Fleet) -> None:
    made, other = owner.token(), owner.token()
    row = found(asked, made["token"])
    assert row is not None
    about = {**row, "id": os.urandom(6).hex(), "kind": "page"}
    asked.add_credential(row["tenant"], about, by=made["id"], digest=b"page")
    asked.add_credential(row["tenant"], {**about, "id": "of-the-page"}, by=about["id"], digest=b"by it")
    assert len(asked.credentials(row["tenant"], "main")) == 4
    owner("token", "revoke", owner.tenant, made["id"])
    assert (
        not found(asked, made["token"])
        and not asked.credential(digest=b"page")
        and not asked.credential(id="of-the-page")
    )
    assert found(asked, other["token"])
    owner("token", "revoke", owner.tenant, made["id"], code=3)
    owner("token", "rotate", owner.tenant, made["id"], code=3)


def test_a_token_that_is_too_old_is_nobodys(cluster: Cluster, owner: Owner, asked: Fleet) -> None:
    made = owner.token("--days", "1")
    with psycopg.connect(cluster.owner) as db:
        db.execute("update anima.credential set expires = now() where id = %s", (made["id"],))
    assert not found(asked, made["token"]) and not asked.credential(id=made["id"])
    assert owner("token", "list", owner.tenant) == []


def test_the_application_reads_no_table_of_credentials_and_reaches_no_other_tenants(
    cluster: Cluster, owner: Owner, asked: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = Owner(cluster, capsys).token()
    mine = found(asked, owner.token()["token"])
    assert mine is not None
    for statement in ("select * from anima.credential", "delete from anima.credential", "table anima.tenant"):
        with psycopg.connect(cluster.application) as db, pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(f"set local app.tenant to '{mine['tenant']}'")
            db.execute(statement)
    assert [each["id"] for each in asked.credentials(mine["tenant"], "main")] == [mine["id"]]
    assert not asked.drop_credential(mine["tenant"], theirs["id"], "main") and found(asked, theirs["token"])


def test_a_tenant_is_exported_whole_and_erased_from_every_table(
    cluster: Cluster, owner: Owner, asked: Fleet, sealed: str, tmp_path: Path
) -> None:
    token = owner.token()
    for agent in ("main", "users/ana"):
        with Home.create(cluster.application, tenant=owner.tenant, agent=agent) as home:
            home.write("a.md", f"- {agent} keeps bees\n")
    row = found(asked, token["token"])
    assert row is not None
    asked.count(row["tenant"], {"requests": 3})
    asked.wake(row["tenant"], "main", 60)
    asked.note_shown(row["tenant"], token["id"], "face")
    owner("quota", owner.tenant, "--bytes", "1000000")
    made = owner("export", owner.tenant, str(tmp_path / "out"))
    assert len(made) == 2
    restore(made[1]["path"], tmp_path / "again")
    with Home.open(tmp_path / "again") as again:
        assert "keeps bees" in again.read("a.md").text and again.past.audit().ok
    assert "no table has one left" in owner("erase", owner.tenant, "--yes")["said"]
    with psycopg.connect(cluster.owner) as db:
        sql = (
            "select table_name from information_schema.columns where table_schema = 'anima' and column_name = 'tenant'"
        )
        tables = [each[0] for each in db.execute(sql).fetchall()]
        assert len(tables) > 16
        for table in tables:
            sql = f"select count(*) from anima.{table} where tenant = %s"
            assert db.execute(sql, (row["tenant"],)).fetchone() == (0,), table


def test_a_tenant_that_is_erased_has_no_token_left_and_others_have_theirs(
    cluster: Cluster, owner: Owner, asked: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    made, theirs = owner.token(), Owner(cluster, capsys).token()
    owner("erase", owner.tenant, "--yes")
    assert not found(asked, made["token"]) and found(asked, theirs["token"])
