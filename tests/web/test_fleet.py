"""Many homes behind one door: a credential says whose home it is, and nothing else of a request does."""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from starlette.testclient import TestClient

from anima import Home
from anima.agent.rituals import Rituals
from anima.agent.schedule import Ran
from anima.cli import run
from anima.home import now
from anima.home.folders import fleet
from anima.store.rows.tenants import Fleet
from anima.web.guard import KEY, JsonLines
from anima.web.homes import Whose
from anima.web.serve import Waking
from conftest import Cluster
from fronting import BASE, Front
from serving import Stream, running

psycopg = pytest.importorskip("psycopg")


@pytest.fixture
def two(front: Front) -> tuple[str, str]:
    """Two tenants, each with a document that the other has not."""
    names = front.cluster.new_tenant(), front.cluster.new_tenant()
    for name in names:
        assert (
            front.owner(name).put("/api/v1/files/secret.md", json={"text": f"- {name} keeps bees\n"}).status_code == 200
        )
    return names


def test_a_token_opens_the_home_it_is_for_and_makes_it_where_there_was_none(front: Front, two: tuple[str, str]) -> None:
    for name, other in (two, two[::-1]):
        found = front.owner(name).get("/api/v1/files/secret.md").json()["text"]
        assert name in found and other not in found
        hits = front.owner(name).get("/api/v1/search", params={"q": "bees", "scope": "main"}).text
        assert name in hits and other not in hits
        assert front.owner(name).get("/api/v1/audit").json()["ok"]


def test_two_servers_that_make_the_same_home_at_once_make_one(front: Front) -> None:
    other, name, said = Front(front.cluster), front.cluster.new_tenant(), list[Any]()
    secret = front.token(name)[1]
    with TestClient(other.app, base_url=BASE):
        asked = [each.client(Authorization=f"Bearer {secret}") for each in (front, other, front, other)]
        threads = [
            threading.Thread(target=lambda one=one: said.append(one.get("/api/v1/files").status_code)) for one in asked
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert said == [200] * 4 and all(one.get("/api/v1/audit").json()["ok"] for one in asked)
        assert "IDENTITY.md" in asked[1].get("/api/v1/files").text


def test_nothing_of_a_request_but_its_credential_says_whose_home_it_is(front: Front, two: tuple[str, str]) -> None:
    mine, theirs = two
    id, secret = front.token(mine)
    with psycopg.connect(front.cluster.owner) as db:
        number = str((db.execute("select tenant from anima.tenant where name = %s", (theirs,)).fetchone() or ("",))[0])
    spoofs = {"X-Tenant": theirs, "X-Anima-Tenant": theirs, "X-Forwarded-User": theirs, "X-Forwarded-Host": theirs}
    spoofs |= {"Cookie": f"anima-homes={id}; tenant={theirs}; app.tenant={number}", "ANIMA-TENANT": theirs}
    asked = front.client(Authorization=f"Bearer {secret}", **spoofs)
    for path in ("/api/v1/files/secret.md", f"/api/v1/files/secret.md?tenant={theirs}&agent=main#{theirs}"):
        assert mine in asked.get(path).text and theirs not in asked.get(path).text
    for path in (
        f"/{theirs}/api/v1/files/secret.md",
        f"/api/v1/files/{theirs}/main/secret.md",
        f"/api/v1/{theirs}/files",
    ):
        assert asked.get(path).status_code == 404


def test_a_page_is_of_the_tenant_whose_key_opened_it_and_halves_of_two_are_no_whole(
    front: Front, two: tuple[str, str]
) -> None:
    pages = [front.page(front.token(name)[1]) for name in two]
    for page, name, other in zip(pages, two, two[::-1], strict=True):
        shown = page.get("/memory/secret.md").text
        assert name in shown and other not in shown and page.get("/settings/health").status_code == 200
        assert page.get("/settings").status_code == 200 and page.get("/today").status_code == 200
    mixed = front.client(Origin=BASE)
    mixed.cookies = pages[0].cookies
    mixed.headers[KEY] = pages[1].headers[KEY]
    assert mixed.get("/memory/secret.md").status_code == 401 and mixed.get("/api/v1/files").status_code == 401
    del mixed.headers[KEY]
    assert two[0] not in mixed.get("/memory/secret.md").text  # the shell, with nothing in it
    bearer = front.client(Authorization=f"Bearer {pages[0].cookies['anima-homes']}{pages[0].headers[KEY]}")
    assert bearer.get("/api/v1/files").status_code == 401


def test_what_is_revoked_rotated_expired_or_suspended_is_turned_away_at_once(
    front: Front, two: tuple[str, str]
) -> None:
    name = two[0]
    id, secret = front.token(name)
    asked, page = front.client(Authorization=f"Bearer {secret}"), front.page(secret)
    assert asked.get("/api/v1/ping").status_code == page.get("/api/v1/ping").status_code == 200
    front.tenants.suspend(name)
    assert asked.get("/api/v1/ping").status_code == 403 and page.get("/api/v1/ping").status_code == 403
    assert front.client().post("/login", data={"code": secret}, headers={"Origin": BASE}).status_code == 403
    front.tenants.suspend(name, again=True)
    assert asked.get("/api/v1/ping").status_code == 200
    front.tenants.rotate_token(name, id, hashlib.sha256(b"another").digest(), grace=timedelta(0))
    assert asked.get("/api/v1/ping").status_code == page.get("/api/v1/ping").status_code == 401
    id, secret = front.token(name)
    asked, page = front.client(Authorization=f"Bearer {secret}"), front.page(secret)
    made = asked.post("/api/v1/tokens", json={"name": "laptop", "scope": "main"}).json()
    agent = front.client(Authorization=f"Bearer {made['token']}")
    assert agent.get("/api/v1/tools").status_code == 200
    short = front.token(name, lifetime=timedelta(hours=1))[1]
    page_, asked_ = front.page(short), front.client(Authorization=f"Bearer {short}")
    asked_.post("/api/v1/tokens", json={"name": "longer", "days": 90})
    ends = {each["name"]: each["expires"] for each in asked_.get("/api/v1/tokens").json()["items"] if each["expires"]}
    assert {name: datetime.fromisoformat(end) < now() + timedelta(hours=2) for name, end in ends.items()} == {
        "x": True,
        "longer": True,
        "a browser": True,
        "laptop": False,
    }
    assert page_.get("/api/v1/ping").status_code == 200
    front.tenants.revoke_token(name, id)
    assert [each.get("/api/v1/tools").status_code for each in (asked, page, agent)] == [401] * 3


def test_whoever_is_not_known_learns_nothing_of_tenants(front: Front, two: tuple[str, str]) -> None:
    id, secret = front.token(two[0])
    front.tenants.revoke_token(two[0], id)
    never = f"anima_{'0' * 12}_{'0' * 64}"
    answers = set()
    for wrong in (secret, never, secret[:-1] + "0", two[0], "", "'; select 1 --", "anima_" + "é" * 12):
        asked = {"Authorization": f"Bearer {wrong}".encode()}
        answer = front.client().get("/api/v1/ping", headers=asked)  # type: ignore[arg-type]
        answers.add((answer.status_code, answer.text))
        answer = front.client(Origin=BASE).post("/login", data={"code": wrong})
        answers.add((answer.status_code, answer.text))
    assert len(answers) == 2 and {status for status, _ in answers} == {401, 403}


def test_an_agents_token_reaches_its_own_routes_of_its_own_home_over_http_and_mcp(
    front: Front, two: tuple[str, str]
) -> None:
    name, other = two
    agent = front.client(Authorization=f"Bearer {front.token(name, 'agent')[1]}")
    assert agent.get("/api/v1/files").status_code == 404 and agent.get("/memory").status_code == 404
    found = agent.post("/api/v1/tools/memory_search", json={"query": "bees"}).text
    assert name in found and other not in found
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    call["params"] = {"name": "memory_search", "arguments": {"query": "bees"}}
    accept = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    told = agent.post("/mcp", json=call, headers=accept)
    assert told.status_code == 200 and name in told.text and other not in told.text
    reader = front.client(Authorization=f"Bearer {front.token(name, 'agent', access='ro')[1]}")
    wish = {"target": "daily_log", "content": "- it rained"}
    assert agent.post("/api/v1/tools/memory_write", json=wish).json()["status"] in ("written", "noted")
    said = reader.post("/api/v1/tools/memory_write", json=wish).json()
    assert said["status"] not in ("written", "noted", "pending"), said
    assert front.owner(name).post("/mcp", json=call, headers=accept).status_code == 401


def test_nothing_of_the_machine_is_a_tenants_owners_to_see_or_to_set(front: Front, two: tuple[str, str]) -> None:
    page, config = front.page(front.token(two[0])[1]), "/api/v1/files/anima.toml"
    for method, path in (("put", "model/practice"), ("post", "connect/claude-code"), ("post", "snapshots")):
        answer = page.request(method, f"/api/v1/{path}", json={} if method == "post" else None)
        assert answer.status_code == 403 and answer.json()["rule"] == "hosted", path
    was = page.get(config).json()
    wish = {"text": was["text"] + '[layers]\nlower = "/etc"\n'}
    assert page.put(config, json=wish, headers={"If-Match": f'"{was["digest"]}"'}).status_code in (202, 403)
    with Home.open(front.cluster.application, tenant=two[0]) as home:  # as an archive from elsewhere could bring it
        home.configure("layers.lower", "/etc")
        home.configure("snapshot.dir", "/tmp/x")
    front.app.state.homes.stop()
    again = Front(front.cluster)
    with TestClient(again.app, base_url=BASE):
        assert "/etc" in again.owner(two[0]).get(config).text
        text = again.owner(two[0]).get("/api/v1/files").text
        assert "passwd" not in text and "secret.md" in text
        served = next(iter(again.app.state.homes._open()))
        assert not served.home.config.layers.lower and not served.home.config.snapshot.dir


def test_homes_that_nobody_uses_are_closed_and_those_in_use_stay(cluster: Cluster, sealed: str) -> None:
    front = Front(cluster, most=2)
    names = [cluster.new_tenant() for _ in range(4)]
    homes = front.app.state.homes
    with TestClient(front.app, base_url=BASE):
        for name in names:
            assert front.owner(name).put("/api/v1/files/a.md", json={"text": f"- {name}\n"}).status_code == 200
        ended = threading.Event()
        while homes.count()[0] > 2 and not ended.wait(0.05):
            pass
        for name in names:
            assert name in front.owner(name).get("/api/v1/files/a.md").text
    assert homes._fleet.is_there()


def test_probes_tell_whether_to_send_anybody_and_nothing_else(front: Front) -> None:
    asked = front.client(Host="10.1.2.3")
    assert asked.get("/healthz").text == "well\n" and asked.get("/readyz").status_code == 200
    front.app.state.homes.is_draining = True
    assert asked.get("/healthz").status_code == 200 and asked.get("/readyz").status_code == 503
    assert asked.get("/api/v1/ping").status_code == 421


def test_it_answers_under_the_name_that_people_know_it_by_and_under_no_other(cluster: Cluster, sealed: str) -> None:
    front = Front(cluster, url="https://homes.example.org")
    secret = front.token(cluster.new_tenant())[1]
    with TestClient(front.app, base_url="http://homes.example.org", follow_redirects=False) as asked:
        answer = asked.post("/login", data={"code": secret}, headers={"Origin": "https://homes.example.org"})
        kept = answer.headers["set-cookie"]
        assert (
            kept.startswith("__Host-anima=") and "Secure" in kept and "HttpOnly" in kept and "SameSite=strict" in kept
        )
        for origin in ("http://homes.example.org", "https://evil.example.org", "null"):
            answer = asked.post("/login", data={"code": secret}, headers={"Origin": origin})
            assert answer.status_code == 403
        for host in ("evil.example.org", "homes.example.org.evil.org", "homes.example.org:80", "10.0.0.1"):
            assert asked.get("/login", headers={"Host": host}).status_code == 421


def test_a_line_of_the_log_holds_no_text_of_a_memory(
    front: Front, two: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        front.owner(two[0]).get("/api/v1/files/secret.md")
        front.owner(two[0]).get("/api/v1/search", params={"q": "bees", "scope": "main"})
        front.owner(two[0]).get("/api/v1/files/no-such-page.md")
        logging.getLogger("anima.web").error("it failed: %s", ValueError("a word of bees"))
    lines = [JsonLines().format(record) for record in caplog.records if record.name.startswith("anima")]
    told = [json.loads(line) for line in lines]
    assert {"/api/v1/files/{path}", "/api/v1/search"} <= {str(each.get("route")).replace(":path", "") for each in told}
    assert any(each.get("error") == "ValueError" for each in told)
    for word in ("bees", "secret", "no-such", two[0]):
        assert word not in "\n".join(lines)


def test_a_span_is_a_route_with_its_tenant_and_holds_no_text_of_a_memory(front: Front, two: tuple[str, str]) -> None:
    exported = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter").InMemorySpanExporter()
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    from anima.web import guard

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exported))
    trace.set_tracer_provider(provider)  # as whoever runs a server might, for all that is in it
    guard.follow(provider)
    try:
        parent = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
        front.owner(two[0]).get("/api/v1/files/secret.md", headers=parent)
        front.owner(two[0]).get("/api/v1/search", params={"q": "bees", "scope": "main"})
        front.owner(two[0]).get("/api/v1/files/no-such-page.md")
    finally:
        guard._tracers.clear()
    spans = exported.get_finished_spans()
    assert [each.attributes["http.response.status_code"] for each in spans] == [200, 200, 404]
    assert spans[0].name == "GET /api/v1/files/{path:path}" and format(spans[0].context.trace_id, "x") == "a" * 32
    told = "".join(each.to_json() for each in spans)
    assert not [word for word in ("bees", "secret", "no-such", two[0]) if word in told]


def test_traces_and_metrics_reach_a_collector_without_a_text_of_a_memory(
    front: Front, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    from anima.web import guard

    came = list[tuple[str, bytes]]()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.append((self.path, gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *given: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv(guard.ENDPOINT, f"http://127.0.0.1:{server.server_address[1]}")
        end = guard.export(os.environ, held=front.app.state.homes.count)
        try:
            front.owner(two[0]).get("/api/v1/files/secret.md")
            front.owner(two[0]).get("/api/v1/search", params={"q": "bees", "scope": "main"})
        finally:
            end()
        server.shutdown()
    told = b"".join(body for _, body in came)
    assert {path for path, _ in came} == {"/v1/traces", "/v1/metrics"}
    assert b"GET /api/v1/files/{path:path}" in told and b"anima.homes" in told
    assert not [word for word in ("bees", "secret", two[0]) if word.encode() in told]


def test_a_server_is_not_kept_by_what_waits_to_be_looked_at(front: Front) -> None:
    waking = Waking(front.app.state.homes, front.app.state.homes._fleet)
    while not waking._due.full():
        waking._due.put(Whose(0, "nobody", "main"))

    waking.stop()

    assert waking._due.full()


def test_a_role_that_could_pass_over_the_policies_is_not_served(
    cluster: Cluster, sealed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", "--database", cluster.owner, "--port", "0", "--json"]) == 5
    assert "every tenant" in capsys.readouterr().out


# -- quotas ----------------------------------------------------------------------------------------------------------------


def test_what_would_be_more_than_a_tenants_quota_is_refused_and_what_is_less_is_not(
    front: Front, two: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    name, other = two
    own, theirs = front.owner(name), front.owner(other)
    words = ["tenant", "quota", name, "--documents", "100", "--bytes", "100000", "--home", front.cluster.owner]
    assert run([*words, "--as-owner"]) == 0
    for served in front.app.state.homes._open():
        served.home.site.store.room._free = 0.0  # which is looked at again every few seconds
    answer = own.put("/api/v1/files/big.md", json={"text": "- x\n" * 30_000})
    assert answer.status_code == 413 and answer.json()["rule"] == "quota" and "100,000 bytes" in answer.json()["detail"]
    assert own.get("/api/v1/files/big.md").status_code == 404 and own.get("/api/v1/audit").json()["ok"]
    assert own.put("/api/v1/files/small.md", json={"text": "- x\n"}).status_code == 200
    assert theirs.put("/api/v1/files/big.md", json={"text": "- x\n" * 30_000}).status_code == 200
    assert run([*words[:3], "--documents", "1", *words[-2:], "--as-owner"]) == 0
    assert own.put("/api/v1/files/one-more.md", json={"text": "- x\n"}).status_code == 413
    assert own.delete("/api/v1/files/small.md").status_code == 200
    capsys.readouterr()
    assert run(["tenant", "show", name, "--home", front.cluster.owner]) == 0
    shown = capsys.readouterr().out
    assert "of 100,000" in shown and "of 1\n" in shown and "today" in shown


def test_requests_beyond_the_days_quota_are_turned_away_on_every_server(front: Front, two: tuple[str, str]) -> None:
    name, other = two
    homes = front.app.state.homes
    homes._count()
    used = front.tenants.show(name).usage["requests"][0]
    front.tenants.set_quota(name, {"requests": used + 3})
    asked = front.owner(name)
    assert asked.get("/api/v1/ping").status_code == 200  # and with its count the quota is learnt
    homes._count()
    assert [asked.get("/api/v1/ping").status_code for _ in range(3)] == [200, 200, 429]
    answer = asked.get("/api/v1/ping")
    assert answer.json()["rule"] == "quota" and 0 < int(answer.headers["Retry-After"]) <= 86_400
    homes._count()
    again = Front(front.cluster)
    with TestClient(again.app, base_url=BASE):
        assert again.owner(name).get("/api/v1/ping").status_code == 429
        assert again.owner(other).get("/api/v1/ping").status_code == 200
    assert front.tenants.show(name).usage["requests"] == (used + 3, used + 3)


def test_a_request_counts_once_however_many_count_at_once(front: Front, two: tuple[str, str]) -> None:
    name, _ = two
    homes = front.app.state.homes
    asked = front.owner(name)
    asked.get("/api/v1/ping")
    homes._count()
    used = front.tenants.show(name).usage["requests"][0]
    for _ in range(5):
        assert asked.get("/api/v1/ping").status_code == 200
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: homes._count(), range(8)))
    assert front.tenants.show(name).usage["requests"][0] == used + 5


def test_what_one_server_showed_whole_another_takes_a_yes_to(front: Front, two: tuple[str, str]) -> None:
    agent = front.client(Authorization=f"Bearer {front.token(two[0], 'agent')[1]}")
    agent.post("/api/v1/agent/taint", json={"source": "web"})
    secret = front.token(two[0])[1]
    proposal = {"target": "SOUL.md", "content": "- Be kind.", "append": True}
    agent.post("/api/v1/tools/memory_write", json=proposal)
    page = front.page(secret)
    waiting = page.get("/api/v1/pending").json()["items"]
    assert waiting
    said, seen = f"/api/v1/pending/{waiting[0]['id']}/approve", {"content": waiting[0]["content"]}
    other = Front(front.cluster)
    with TestClient(other.app, base_url=BASE):
        elsewhere = other.client(Origin=BASE)
        elsewhere.cookies, elsewhere.headers[KEY] = page.cookies, page.headers[KEY]
        assert elsewhere.post(said, json=seen).json()["rule"] == "shown"
        assert page.get(f"/inbox/{waiting[0]['id']}").status_code == 200
        assert "shown" not in elsewhere.post(said, json=seen).text


# -- between servers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hears", [True, pytest.param(False, marks=pytest.mark.long)])
def test_what_one_server_writes_is_told_to_who_listens_at_another(
    cluster: Cluster, sealed: str, monkeypatch: pytest.MonkeyPatch, hears: bool
) -> None:
    if hears:
        monkeypatch.setattr("anima.web.homes.TICK", 3_600.0)  # so that nobody looks by themselves
    else:  # as through a pooler, which gives every transaction another connection
        monkeypatch.setattr(Fleet, "heard", lambda self, is_over: iter(()))
    here, there, name = Front(cluster), Front(cluster), cluster.new_tenant()
    secret, other = here.token(name)[1], here.token(cluster.new_tenant())[1]
    with running(here.app) as port, TestClient(there.app, base_url=BASE) as away:
        stream, deaf = Stream(port, secret), Stream(port, other)
        away.headers["Authorization"] = f"Bearer {secret}"
        assert away.put("/api/v1/files/a.md", json={"text": "- one\n"}).status_code == 200
        assert stream.until("change")["paths"] == ["a.md"]
        away.headers["Authorization"] = f"Bearer {other}"
        assert away.put("/api/v1/files/b.md", json={"text": "- two\n"}).status_code == 200
        assert deaf.until("change")["paths"] == ["b.md"]
        stream.close()
        deaf.close()


def test_a_home_whose_time_has_come_is_given_to_one_server_alone(front: Front, two: tuple[str, str]) -> None:
    asked, given = fleet(front.cluster.application), list[tuple[int, str, str]]()
    with psycopg.connect(front.cluster.owner, autocommit=True) as db:
        sql = "select w.tenant, w.at > now() from anima.waking w join anima.tenant t using(tenant) where t.name = %s"
        tenant, _ = db.execute(sql, (two[0],)).fetchone() or (0, False)
        asked.wake(tenant, "main", 0, anew=True)
        servers = [threading.Thread(target=lambda: given.extend(asked.woken(1_000, 600))) for _ in range(4)]
        for server in servers:
            server.start()
        for server in servers:
            server.join()
        assert sum(row[0] == tenant for row in given) <= 1  # another test's server may have it
        assert (db.execute(sql, (two[0],)).fetchone() or (0, False))[1]


def test_a_ritual_runs_once_and_within_the_tokens_of_its_tenant(front: Front, two: tuple[str, str]) -> None:
    homes, name = front.app.state.homes, two[0]
    with psycopg.connect(front.cluster.owner) as db:
        tenant = (db.execute("select tenant from anima.tenant where name = %s", (name,)).fetchone() or (0,))[0]
    woken = Whose(tenant, name, "main")
    with homes.holding(woken) as served:
        assert served.home.dream().status  # also where nothing was ever logged
        served.home.write("HEARTBEAT.md", "- Look at the garden.\n")
        rituals = Rituals(served.home)
        rituals.switch(True)
        rituals.round()
        rituals._change(lambda kept: replace(kept, ran={"heartbeat": Ran(seen="2020-01-01T00:00:00+00:00")}))
    other = Front(front.cluster)
    both = [Waking(homes, homes._fleet), Waking(other.app.state.homes, homes._fleet)]
    servers = [threading.Thread(target=each.look, args=(woken,)) for each in both]
    for server in servers:
        server.start()
    for server in servers:
        server.join()
    with homes.holding(woken) as served:
        runs = [row for row in served.home.sessions.list() if row.source_plugin == "heartbeat"]
        ran = Rituals(served.home).state().ran["heartbeat"]
    assert len(runs) == 1 and ran.outcome in ("silent", "delivered")
    used = front.tenants.show(name).usage["tokens"]
    assert used == (ran.tokens, None) and ran.tokens > 0
    front.tenants.set_quota(name, {"tokens": used[0]})
    with homes.holding(woken) as served:
        kept = Rituals(served.home)._change(
            lambda kept: replace(kept, ran={"heartbeat": Ran(seen="2020-01-01T00:00:00+00:00")})
        )
        assert kept.on
    both[0].look(woken)
    with homes.holding(woken) as served:
        assert Rituals(served.home).state().ran["heartbeat"].outcome == "budget"
    assert front.tenants.show(name).usage["tokens"][0] == used[0]
    other.app.state.homes.stop()


@pytest.mark.long
def test_a_server_that_is_told_to_end_says_so_answers_for_a_while_and_leaves_nothing_open(
    cluster: Cluster, sealed: str
) -> None:
    secret = Front(cluster).token(cluster.new_tenant())[1]
    words = ["serve", "--database", cluster.application, "--port", "0", "--drain", "3", "--log-json", "--json"]
    server = subprocess.Popen(
        [sys.executable, "-m", "anima", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with server:
        assert server.stdout and server.stderr
        url = json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")["url"]
        try:
            drained(url, secret, server)
        finally:
            server.kill()
        lines = [json.loads(line) for line in server.stderr.read().splitlines()]
    assert [each["route"] for each in lines] == ["/api/v1/files", "/api/v1/ping"] and server.returncode == 0


def drained(url: str, secret: str, server: subprocess.Popen[str]) -> None:

    def status(path: str) -> int:
        asked = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {secret}"})
        try:
            with urllib.request.urlopen(asked, timeout=120) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    assert (status("/readyz"), status("/api/v1/files")) == (200, 200)
    server.send_signal(signal.SIGTERM)
    while status("/readyz") == 200:
        pass
    assert status("/readyz") == 503 and status("/api/v1/ping") == 200
    server.wait(120)
