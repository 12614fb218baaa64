"""Attacks on a server of many homes: by whoever is not known, by an agent with little rights, by what is cut off meanwhile."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from typing import Any

import pytest

from anima.cli import run
from anima.errors import NoSuchHome
from anima.store.rows.tenants import Fleet, _tables
from anima.web import homes as many
from anima.web.guard import JsonLines
from anima.web.tokens import new_pass, new_secret
from conftest import NOW, Cluster
from fronting import BASE, Front
from serving import Stream, running

psycopg = pytest.importorskip("psycopg")


# -- rights ----------------------------------------------------------------------------------------------------------------


def test_a_token_to_read_alone_writes_nothing_by_whatever_door_and_however_late(front: Front) -> None:
    name = front.cluster.new_tenant()
    reader = front.client(Authorization=f"Bearer {front.token(name, 'agent', access='ro')[1]}")
    owner = front.owner(name)
    before = {each["path"] for each in owner.get("/api/v1/files").json()["items"]}
    said = {"messages": [{"role": "user", "content": "Remember that I like zebras."}]}
    assert reader.post("/v1/chat/completions", json=said).status_code == 200
    line = {"role": "user", "content": "Remember that I like zebras."}
    assert reader.post("/api/v1/agent/log", json=line).status_code == 200
    reader.post("/api/v1/agent/session")
    (served,) = [each for each in front.app.state.homes._open() if name in each.home.name]
    served.home.sessions.flush_idle(timedelta(seconds=-1))  # as a server does with what nobody closed
    assert reader.post("/v1/chat/completions", json=said).status_code == 200
    after = [each["path"] for each in owner.get("/api/v1/files").json()["items"]]
    assert {path for path in after if not path.startswith("sessions/")} == before
    assert owner.get("/api/v1/noted").json()["items"] == owner.get("/api/v1/pending").json()["items"] == []


def test_no_server_stands_without_a_key_whose_tickets_anybody_could_make(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for key in ("", "short"):
        monkeypatch.setenv("ANIMA_KEY", key)
        assert run(["serve", "--database", cluster.application, "--port", "0", "--json"]) != 0
        assert "ANIMA_KEY" in capsys.readouterr().out


# -- floods ----------------------------------------------------------------------------------------------------------------


def nobodys() -> str:
    return new_secret(new_pass("owner", name="x", scope=None, now=NOW))


def test_a_flood_of_unknown_secrets_is_bounded_and_keeps_nobody_out_who_was_here(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = front.owner(front.cluster.new_tenant())
    page = front.page(front.token(front.cluster.new_tenant())[1])
    assert own.get("/api/v1/ping").status_code == page.get("/api/v1/ping").status_code == 200
    known, free, begun = Fleet.credential, threading.Event(), threading.Semaphore(0)
    good, at_once, most = set(front.app.state.homes._known), list[int](), list[int]()

    def slow(self: Fleet, **by: Any) -> Any:
        if by.get("digest") not in good:
            at_once.append(1)
            most.append(len(at_once))
            begun.release()
            free.wait(180)
            at_once.pop()
        return known(self, **by)

    monkeypatch.setattr(Fleet, "credential", slow)
    monkeypatch.setattr(many, "MOST_STRANGERS", 12)
    said, turned = list[int](), threading.Semaphore(0)

    def ask(way: int) -> None:
        client = front.client(Origin=BASE)
        secret = nobodys()
        if way % 2:
            said.append(client.post("/login", data={"code": secret}).status_code)
        else:
            said.append(client.get("/api/v1/ping", headers={"Authorization": f"Bearer {secret}"}).status_code)
        turned.release()

    threads = [threading.Thread(target=ask, args=(way,)) for way in range(12 + 8)]
    for thread in threads:
        thread.start()
    for _ in range(many.STRANGERS):
        begun.acquire()
    for _ in range(8):  # more than wait are turned away at once
        turned.acquire()
    assert set(said) == {429}
    assert own.get("/api/v1/ping").status_code == page.get("/api/v1/ping").status_code == 200
    free.set()
    for thread in threads:
        thread.join()
    assert max(most) == many.STRANGERS and sorted(set(said)) == [401, 403, 429] and said.count(429) == 8


def test_probes_ask_the_database_once_a_second_however_many_come(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, is_there = list[int](), Fleet.is_there
    monkeypatch.setattr(many, "TICK", 3_600.0)
    monkeypatch.setattr(Fleet, "is_there", lambda self: asked.append(1) or is_there(self))
    assert {front.client().get("/readyz").status_code for _ in range(20)} == {200} and len(asked) <= 1


def test_a_probe_is_answered_while_the_database_hangs(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    free = threading.Event()
    monkeypatch.setattr(many, "AWAY", 0.1)
    monkeypatch.setattr(many, "TICK", 0.0)
    monkeypatch.setattr(Fleet, "is_there", lambda self: free.wait(180))
    assert front.client().get("/readyz").status_code == 503 and front.client().get("/healthz").status_code == 200
    free.set()


def test_browsers_that_come_in_are_counted_among_the_tokens(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "MOST_PASSES", 3)
    secret = front.token(front.cluster.new_tenant())[1]
    said = [front.client(Origin=BASE).post("/login", data={"code": secret}).status_code for _ in range(4)]
    assert said == [200, 200, 400, 400]


# -- quotas ----------------------------------------------------------------------------------------------------------------


def test_who_was_turned_away_for_a_quota_is_let_in_once_there_is_more_of_it(front: Front) -> None:
    name, homes = front.cluster.new_tenant(), front.app.state.homes
    front.tenants.set_quota(name, {"requests": 2})
    own = front.owner(name)
    assert [own.get("/api/v1/ping").status_code for _ in range(3)] == [200, 200, 429]
    homes._count()
    assert own.get("/api/v1/ping").status_code == 429
    front.tenants.set_quota(name, {"requests": 9})  # as midnight would
    homes._count()
    assert own.get("/api/v1/ping").status_code == 200


# -- cut off meanwhile -----------------------------------------------------------------------------------------------------


def test_what_a_server_does_for_a_tenant_that_was_erased_leaves_no_row(front: Front) -> None:
    name, homes = front.cluster.new_tenant(), front.app.state.homes
    page, agent = front.page(front.token(name)[1]), front.token(name, "agent")[1]
    assert page.post("/api/v1/chat", json={"text": "Hello"}).status_code == 201
    line = {"role": "user", "content": "Remember that I like zebras."}
    assert front.client(Authorization=f"Bearer {agent}").post("/api/v1/agent/log", json=line).status_code == 200
    (served,) = [each for each in homes._open() if name in each.home.name]
    (session,) = served._open.values()
    ((place, held),) = [each for each in homes._held.items() if each[1].served is served]
    with psycopg.connect(front.cluster.owner, autocommit=True) as db:
        front.tenants.erase(name)
        late = [  # what was asked for before, and comes to it only now
            lambda: session.log("user", "I like okapis, too."),
            lambda: served.home.sessions.begin(scope="main").log("user", "and gnus"),
            lambda: served.home.dream(),
            lambda: homes._fleet.note_shown(place[0], "x", "y"),
            lambda: homes._fleet.wake(*place, 1),
            lambda: homes._fleet.count(place[0], {"requests": 1}),
            lambda: served.keyring.make("owner", name="z", scope=None),
        ]
        for each in late:
            with pytest.raises(NoSuchHome):
                each()
        held.asked = 1
        homes._count()
        assert held.asked == 0 and page.get("/api/v1/ping").status_code == 401
        homes._close(served)
        sql = "select count(*) from anima.{} where tenant = %s"
        left = {table: db.execute(sql.format(table), (place[0],)).fetchone() for table in _tables(db)}
        assert set(left.values()) == {(0,)}, left


def test_a_page_that_is_open_hears_no_more_once_its_tenant_is_suspended_or_erased(
    cluster: Cluster, sealed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "STILL", 0.0)
    front = Front(cluster)
    with running(front.app) as port:
        for end in (front.tenants.suspend, front.tenants.erase):
            name = cluster.new_tenant()
            stream = Stream(port, front.token(name)[1])
            (served,) = [each for each in front.app.state.homes._open() if name in each.home.name]
            served.home.write("a.md", "- one\n")
            assert stream.until("change")["paths"] == ["a.md"]
            end(name)
            served.bulletin.tell("files", {"word": "one that is still told"})
            served.bulletin.tell("files", {"word": "and one that is not"})
            assert b"and one that is not" not in stream.answer.read()
            stream.close()


# -- logs ------------------------------------------------------------------------------------------------------------------


def test_what_others_log_is_where_it_arose_and_not_what_they_were_given(caplog: pytest.LogCaptureFixture) -> None:
    bees = "a word of bees"
    logging.getLogger("asyncio").error(f"Task exception was never retrieved: {ValueError(bees)}")
    line = JsonLines().format(caplog.records[-1])
    assert "bees" not in line and "test_fleet_attacked:" in line and '"log": "asyncio"' in line
