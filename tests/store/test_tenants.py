"""Tenants share a server and nothing else, also where the application forgets to ask for its own rows."""

from __future__ import annotations

import itertools
import os
import threading

import pytest

from anima import Home, Scope
from anima.cli import run
from anima.compat import new_with_db
from anima.errors import HomeError
from anima.store.rows import transaction
from conftest import Cluster

psycopg = pytest.importorskip("psycopg")
WORKERS, ROUNDS = 4, 1


def everything(home: Home, canary: str) -> str:
    """Every kind of verb once, by somebody who knows one secret; all that was seen."""
    seen: list[object] = [home.remember(f"{canary} keeps bees.").status, home.note(f"{canary} had tea")]
    seen += [home.write(f"{canary}.md", f"- {canary}\n"), home.append(f"{canary}.md", "- more\n")]
    with home.session(scope=Scope.MAIN) as session:
        session.log("user", f"my name is {canary}")
        seen.append(session.call("memory_search", {"query": "bees tea name"}))
    seen += [home.list_all(), home.search("bees tea", scope=Scope.MAIN, limit=50), home.prompt(scope=Scope.MAIN).text]
    seen += [home.sessions.list(), home.sessions.find("name"), home.past.log(limit=50), home.past.audit()]
    seen += [list(home.site.store.ledger.records()), home.upkeep.numbers(), home.index.bring_up(rebuild=True)]
    revisions = home.past.log(limit=5)
    seen += [home.past.diff(revision.id) for revision in revisions]
    seen += [home.site.store.whole.survey(), home.site.store.changed("0"), home.undo()]
    for ask in (
        lambda: home.read("nowhere.md"),
        lambda: home.past.diff("0" * 40),
        lambda: home.sessions.read("nobody"),
    ):
        try:
            ask()
        except HomeError as error:
            seen.append(str(error))
    seen.append(home.forget(text=canary, purge=True, dry_run=True))
    return repr(seen)


def live_beside(cluster: Cluster, *, shared: bool = False) -> None:
    """Several workers in each of two tenants, all at once: nobody sees the other's secret."""
    canaries = {cluster.new_tenant(): f"canary{os.urandom(6).hex()}" for _ in range(2)}
    seen: list[tuple[str, str]] = []
    failed: list[BaseException] = []

    def work(tenant: str, agent: str) -> None:
        try:
            for _ in range(ROUNDS):
                with Home.open(cluster.application, tenant=tenant, agent=agent, create=True) as home:
                    seen.append((tenant, everything(home, canaries[tenant])))
        except BaseException as error:
            failed.append(error)

    agents = ["main"] if shared else [f"agent{n}" for n in range(WORKERS // 2)]
    threads = [threading.Thread(target=work, args=pair) for pair in itertools.product(canaries, agents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == [] and len(seen) == len(threads) * ROUNDS
    for tenant, text in seen:
        assert canaries[tenant] in text
        assert not any(canary in text for other, canary in canaries.items() if other != tenant)


def test_nothing_crosses_between_tenants(cluster: Cluster, sealed: str) -> None:
    live_beside(cluster)


def test_nothing_crosses_where_the_application_does_not_ask_for_its_own_rows(
    cluster: Cluster, sealed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "OWN", "true")  # and so two homes of one tenant would be one
    live_beside(cluster, shared=True)


def test_a_statement_without_a_tenant_sees_nothing_and_writes_nothing(cluster: Cluster, sealed: str) -> None:
    tenant = cluster.new_tenant()
    with Home.create(cluster.application, tenant=tenant, name="Aria") as home:
        own = home.site.store.rows.tenant  # type: ignore[attr-defined]
    with psycopg.connect(cluster.application) as db:
        tables = [row[0] for row in db.execute("select tablename from pg_tables where schemaname = 'anima'").fetchall()]
        assert len(tables) > 12
        for table in set(tables) - {"tenant", "migration", "credential", "waking"}:
            assert db.execute(f"select count(*) from anima.{table}").fetchone() == (0,), table
        db.execute("set local app.tenant to '999999'")
        for table in set(tables) - {"tenant", "migration", "credential", "waking"}:
            assert db.execute(f"select count(*) from anima.{table}").fetchone() == (0,), table
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(f"insert into anima.gone values({own}, 1, 1, 'x')")
    with psycopg.connect(cluster.application) as db:
        db.execute(f"set local app.tenant to '{own}'")
        for change in ("delete from anima.head", "update anima.head set n = 0", "select * from anima.tenant"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege), db.transaction():
                db.execute(change)


def test_an_address_that_names_a_tenant_alone_means_its_first_agent(cluster: Cluster, sealed: str) -> None:
    tenant = cluster.new_tenant()
    Home.create(cluster.application, tenant=tenant).close()
    with Home.open(f"{cluster.application}#{tenant}") as home:
        assert home.name.endswith(f" {tenant}/main")


def test_a_tenant_that_is_suspended_is_not_opened(cluster: Cluster, sealed: str) -> None:
    tenant = cluster.new_tenant()
    Home.create(cluster.application, tenant=tenant).close()
    with psycopg.connect(cluster.owner) as db:
        db.execute("update anima.tenant set suspended = now() where name = %s", (tenant,))
    with pytest.raises(HomeError, match="suspended"):
        Home.open(cluster.application, tenant=tenant)


def test_an_owner_makes_shows_suspends_and_erases_a_tenant(
    cluster: Cluster, sealed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def tenant(*words: str) -> str:
        assert run(["tenant", *words, "--home", cluster.owner, "--as-owner"]) == 0
        return capsys.readouterr().out

    name, other = f"acme{os.urandom(4).hex()}", cluster.new_tenant()
    assert "is a tenant" in tenant("create", name) and "already" in tenant("create", name)
    with new_with_db(name, cluster.application) as home, new_with_db(other, cluster.application) as theirs:
        home.write("a.md", "mine\n")
        theirs.write("a.md", "theirs\n")
    assert name in tenant("list") and "main" in tenant("show", name)
    tenant("suspend", name)
    with pytest.raises(HomeError, match="suspended"):
        Home.open(cluster.application, tenant=name)
    tenant("resume", name)
    Home.open(cluster.application, tenant=name).close()
    assert "no table has one left" in tenant("erase", name, "--yes")
    with pytest.raises(HomeError, match="no tenant"):
        Home.open(cluster.application, tenant=name)
    with Home.open(cluster.application, tenant=other) as theirs:
        assert theirs.read("a.md").text == "theirs\n" and theirs.past.audit().ok
