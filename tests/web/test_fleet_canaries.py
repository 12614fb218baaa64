"""Two tenants behind one server, thirty-two workers, every route, every page, every request of MCP and their errors, with every
kind of credential and with ids of the other's: what one of them knows stands in nothing the other is told, nor in the log.
Again with the application's own conditions taken away in the server; and again through pgbouncer in transaction mode."""

from __future__ import annotations

import itertools
import json
import os
import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx2 as httpx
import pytest

from anima.model import Scope
from anima.web import pages
from anima.web.guard import KEY
from conftest import Cluster
from fronting import Front, made_up, served

psycopg = pytest.importorskip("psycopg")
WORKERS = int(os.environ.get("CANARY_WORKERS", "32"))
OPENAPI = json.loads((Path(__file__).parent.parent / "golden/openapi.json").read_text())
MCP = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
IDS = ("sessions", "pending", "tokens", "chat", "changes", "revisions", "noted")
# What a request names by an id, and of which kind that is.
NAMED = {"session": "sessions", "change": "changes", "revision": "revisions", "other": "revisions", "names": "noted"}
SHELL = {"/login", "/logout", "/", "/healthz", "/readyz", "/static/icon.svg"}  # what is there for everybody


class Told(NamedTuple):
    """What somebody of a tenant was told, and by what."""

    tenant: str
    route: str
    status: int
    text: str


@dataclass
class Party:
    """A tenant, the word that is its own, its secrets, and the ids of what it has."""

    name: str
    canary: str
    owner: str
    agents: dict[str, str]  # by what they may
    dead: dict[str, str]  # by why
    ids: dict[str, list[str]] = field(default_factory=dict)


def party(front: Front, cluster: Cluster) -> Party:
    name = cluster.new_tenant()
    gone, revoked = front.token(name)
    agents = {
        "rw": front.token(name, "agent")[1],
        "ro": front.token(name, "agent", access="ro")[1],
        "group": front.token(name, "agent", scope=Scope.GROUP)[1],
    }
    dead = {"expired": front.token(name, lifetime=timedelta(seconds=-1))[1], "revoked": revoked, "nobody's": "x" * 80}
    front.tenants.revoke_token(name, gone)
    return Party(name, f"canary{os.urandom(6).hex()}", front.token(name)[1], agents, dead)


class Caller:
    """Somebody of a tenant, who asks the server and remembers what was told."""

    def __init__(self, url: str, whose: Party, *, number: int = 0) -> None:
        self.whose, self.seen, self.number, self.dice = whose, list[Told](), number, random.Random(number)
        self.client = httpx.Client(base_url=url, timeout=300)
        self.url = url
        self.page: dict[str, str] = {}

    def ask(self, method: str, path: str, *, by: str | None = "", route: str = "", **given: Any) -> httpx.Response:
        """Asks with a secret, the owner's where none is named; without any where it is None."""
        headers = {
            **({} if by is None else {"Authorization": f"Bearer {by or self.whose.owner}"}),
            **given.pop("headers", {}),
        }
        with self.client.stream(method, path, headers=headers, **given) as answer:
            if (
                "event-stream" in answer.headers.get("content-type", "")
                and path != "/mcp"
                and "completions" not in path
            ):
                text = next(answer.iter_text())  # it would go on
            else:
                answer.read()
                text = answer.text
        told = f"{answer.headers!r} {text}"
        self.seen.append(Told(self.whose.name, f"{method} {route or path}", answer.status_code, told))
        return answer

    def json(self, path: str) -> Any:
        return self.ask("GET", path).json()

    # -- what it has ------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Puts the canary wherever something can be kept, and learns the ids of it."""
        word, agent = self.whose.canary, self.whose.agents["rw"]
        assert self.ask("PUT", f"/api/v1/files/{word}.md", json={"text": f"- {word} keeps bees\n"}).status_code == 200
        self.ask("POST", "/api/v1/remember", json={"fact": f"My name is {word}."})
        self.ask("POST", "/api/v1/note", json={"content": f"{word} had tea"})
        chat = self.ask("POST", "/api/v1/chat", json={"text": f"I am called {word}."}).json()["id"]
        while self.json(f"/api/v1/chat/{chat}")["running"]:
            pass
        self.ask("POST", "/api/v1/agent/log", by=agent, json={"role": "user", "content": f"I am {word}."})
        for target, text in (("soul", f"# Soul\n\nBe {word}.\n"), ("memory", f"{word} was on the web")):
            given = {"target": target, "content": text}
            assert self.ask("POST", "/api/v1/tools/memory_write", by=agent, json=given).status_code == 200
        self.learn()
        assert all(self.whose.ids.values()), self.whose.ids

    def learn(self) -> None:
        for kind in ("sessions", "pending", "tokens", "chat", "changes"):
            self.whose.ids[kind] = [row["id"] for row in self.json(f"/api/v1/{kind}")["items"]]
        self.whose.ids["revisions"] = [row["id"] for row in self.json("/api/v1/history")["items"]]
        self.whose.ids["noted"] = [row["name"] for row in self.json("/api/v1/noted")["items"]]

    def come_in(self) -> None:
        answer = self.ask("POST", "/login", by=None, data={"code": self.whose.owner}, headers={"Origin": self.url})
        (cookie,) = self.client.cookies.items()
        self.client.cookies.clear()
        self.page = {"Cookie": "=".join(cookie), KEY: answer.json()["key"], "Origin": self.url}

    # -- everything that can be asked ----------------------------------------------------------------------------------------

    def live(self, other: Mapping[str, list[str]]) -> None:
        """Every route with what is one's own and with ids of the other's, by everybody."""
        self.come_in()
        for method, path, about in operations():
            is_whole = self.dice.random() < 0.5
            for ids, whole in ((self.whose.ids, is_whole), (other, not is_whole)):
                given = self.given(method, path, about, ids, whole=whole)
                if path.startswith("/api/v1/settings"):
                    self.ask(method, given.pop("path"), by=None, headers=self.page, route=path, **given)
                elif "/agent" in path or "/tools" in path:
                    by = self.whose.agents[self.dice.choice(list(self.whose.agents))]
                    self.ask(method, given.pop("path"), by=by, route=path, **given)
                elif not (method == "DELETE" and "/tokens/" in path and ids is self.whose.ids):
                    self.ask(method, given.pop("path"), route=path, **given)
            given = self.given(method, path, about, other, whole=True)
            by = self.dice.choice([None, *self.whose.dead.values(), *self.whose.agents.values()])
            self.ask(method, given.pop("path"), by=by, route=path, **given)
        for path, ids in itertools.product(drawn(), (self.whose.ids, other)):
            at = self.filled(path, ids)
            self.ask(
                "GET",
                at,
                by=None,
                headers=self.page,
                route=path,
                params={"q": "bees tea", "path": f"{self.whose.canary}.md"},
            )
            self.ask("GET", at, by=self.dice.choice([None, *self.whose.agents.values()]), route=path)
        for path in SHELL - {"/logout"}:
            self.ask("GET", path, by=None)
        self.speak()
        self.ask("POST", "/logout", by=None, headers=self.page)
        self.client.close()

    def filled(self, path: str, ids: Mapping[str, list[str]]) -> str:
        kind = next((kind for kind in IDS if f"/{kind}/" in path), "pending")
        words = {
            "id": self.dice.choice(ids[kind]),
            "key": "timezone",
            "host": "claude-code",
            "scope": "main",
            "rest": "",
        }
        words |= {
            "path": f"{self.whose.canary}.md",
            "name": self.dice.choice(["memory_search", "memory_get", "nothing"]),
        }
        for name, value in words.items():
            path = path.replace(f"{{{name}}}", value).replace(f"{{{name}:path}}", value)
        return path

    def given(
        self, method: str, path: str, about: Mapping[str, Any], ids: Mapping[str, list[str]], *, whole: bool
    ) -> dict[str, Any]:
        """A request that fits a route's description: all that it takes, or what it must have."""
        given: dict[str, Any] = {"path": self.filled(path, ids)}
        if (method == "PUT" and "/files/" in path) or (method == "DELETE" and "/files/" in path):
            given["path"] = given["path"].replace(".md", f"-{self.number}.md")
        asked = [row for row in about.get("parameters", ()) if row["in"] == "query" and (whole or row.get("required"))]
        given["params"] = {
            row["name"]: self.value(row["name"], row["schema"], ids) for row in asked if row["name"] != "at"
        }
        if body := about.get("requestBody"):
            given["json"] = self.value("", body["content"]["application/json"]["schema"], ids, whole=whole)
        if path == "/api/v1/move":
            given["json"]["path"] = f"{self.whose.canary}-{self.number}.md"
        return given

    def value(self, name: str, schema: Any, ids: Mapping[str, list[str]], *, whole: bool = True) -> Any:
        if "$ref" in schema:
            schema = OPENAPI["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        if name in NAMED and "object" not in str(schema.get("type")):
            chosen = self.dice.choice(ids[NAMED[name]])
            return [chosen] if name == "names" else chosen
        schema = next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), schema)
        if "$ref" in schema or "anyOf" in schema:
            return self.value(name, schema, ids, whole=whole)
        if schema.get("type") == "object":
            must, rows = set(schema.get("required", ())), schema.get("properties", {})
            return {key: self.value(key, row, ids) for key, row in rows.items() if whole or key in must}
        if schema.get("type") == "array":
            return [self.value(name, schema.get("items", {}), ids)]
        own = {"path": f"{self.whose.canary}.md", "dry_run": True, "scope": "main", "q": "bees tea name web"}
        own |= {"id": self.dice.choice(ids["pending"]), "to": f"moved/{self.whose.canary}-{self.number}.md"}
        kinds = {"integer": 1, "number": 0, "boolean": False}
        return own.get(name, schema.get("enum", [kinds.get(schema.get("type", ""), f"{self.whose.canary} said so")])[0])

    def speak(self) -> None:
        """Every request of MCP, and the chat format."""
        word, uri = self.whose.canary, f"anima://document/{self.whose.canary}.md"
        by = list(self.whose.agents.values())[self.number // 2 % 3]
        tools = self.json_of(self.rpc(by, "tools/list")).get("tools", [])
        for tool in tools:
            arguments = made_up(tool["inputSchema"], word)
            self.rpc(by, "tools/call", {"name": tool["name"], "arguments": arguments})
        self.rpc(by, "tools/call", {"name": "memory_search", "arguments": {"query": "bees tea name web"}})
        self.rpc(by, "tools/call", {"name": "nothing", "arguments": {}})
        for method in (
            "resources/list",
            "resources/templates/list",
            "prompts/list",
            "nothing/at/all",
            "initialize",
        ):
            self.rpc(by, method)
        for row in self.json_of(self.rpc(by, "resources/list")).get("resources", []):
            self.rpc(by, "resources/read", {"uri": row["uri"]})
        self.rpc(by, "resources/read", {"uri": uri})
        for row in self.json_of(self.rpc(by, "prompts/list")).get("prompts", []):
            self.rpc(by, "prompts/get", {"name": row["name"]})
        said = {"messages": [{"role": "user", "content": f"What is my name? I am {word}."}]}
        self.ask("POST", "/v1/chat/completions", by=by, json={**said, "stream": self.dice.random() < 0.5})
        self.ask("GET", "/v1/models", by=by)
        self.rpc(self.whose.owner, "tools/list")
        self.ask("POST", "/mcp", by=None, headers=MCP, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})

    def rpc(self, by: str, method: str, params: Any = None) -> httpx.Response:
        told = {"jsonrpc": "2.0", "id": 1, "method": method, **({"params": params} if params else {})}
        session = {"mcp-session-id": f"of everybody {self.dice.randrange(4)}"}
        return self.ask("POST", "/mcp", by=by, headers=MCP | session, json=told, route=f"/mcp {method}")

    @staticmethod
    def json_of(answer: httpx.Response) -> Any:
        found = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")] or ["{}"]
        return json.loads(found[0]).get("result", {})


def operations() -> Iterator[tuple[str, str, Any]]:
    for path, each in OPENAPI["paths"].items():
        for method, about in each.items():
            yield method.upper(), path, about


def drawn() -> list[str]:
    """Every page."""
    found = [route.path for route in pages.router().routes if hasattr(route, "methods")]
    assert {"/memory/{path:path}", "/sessions/{id}", "/search"} <= set(found)
    return found


@contextmanager
def settled(cluster: Cluster, address: str, log: Path, **how: Any) -> Iterator[tuple[str, list[Caller]]]:
    """A server, and somebody of each of two tenants who have something there."""
    front = Front(cluster)
    both = [party(front, cluster) for _ in range(2)]
    front.app.state.homes.stop()
    with served(address, log, **how) as url:
        callers = [Caller(url, whose) for whose in both]
        for caller in callers:
            caller.settle()
        yield url, callers
        for caller in callers:
            caller.client.close()
    lines = log.read_text()
    assert '"status": 200' in lines and not [each for each in both if each.canary in lines or each.name in lines]


def live_beside(cluster: Cluster, address: str, log: Path, **how: Any) -> None:
    """Half of the workers are one tenant's and half another's, all at once."""
    failed = list[BaseException]()

    def work(caller: Caller, other: Mapping[str, list[str]]) -> None:
        try:
            caller.live(other)
        except BaseException as error:
            failed.append(error)

    with settled(cluster, address, log, **how) as (url, callers):
        both = [caller.whose for caller in callers]
        hearing = [Heard(url, whose) for whose in both]
        many = [Caller(url, both[n % 2], number=n + 1) for n in range(WORKERS)]
        threads = [threading.Thread(target=work, args=(one, dict(both[(n + 1) % 2].ids))) for n, one in enumerate(many)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed, failed
        for caller in callers:  # the home is whole, and what is in it is its own
            assert caller.json("/api/v1/audit")["ok"]
            for row in caller.json("/api/v1/files?limit=1000")["items"]:
                caller.ask("GET", f"/api/v1/files/{row['path']}", route="/api/v1/files/{path}")
    seen = [told for one in (*callers, *many) for told in one.seen] + [told for one in hearing for told in one.end()]
    check_seen(seen, both)
    print(json.dumps({"workers": WORKERS, "asked": len(seen), "routes": len({told.route for told in seen})}))


def check_crossed(seen: list[Told], both: list[Party]) -> None:
    for whose, other in (both, both[::-1]):
        mine = [told for told in seen if told.tenant == whose.name]
        crossed = [told for told in mine if other.canary in told.text or other.name in told.text]
        assert not crossed, crossed[0]
    broken = [told for told in seen if told.status >= 500]
    assert not broken, broken[0]


def check_seen(seen: list[Told], both: list[Party]) -> None:
    check_crossed(seen, both)
    for whose in both:
        own = {
            told.route
            for told in seen
            if told.tenant == whose.name and whose.canary in told.text and told.status == 200
        }
        assert {
            "GET /api/v1/files/{path}",
            "GET /api/v1/search",
            "GET /api/v1/prompt",
            "GET /api/v1/sessions/{id}",
            "GET /api/v1/chat/{id}",
            "GET /api/v1/changes",
            "GET /api/v1/pending",
            "GET /api/v1/noted",
            "GET /memory/{path:path}",
            "GET /sessions/{id}",
            "GET /search",
            "POST /mcp tools/call",
            "POST /mcp resources/read",
            "events",
        } <= own, own  # and so would the other's be seen
    asked = {told.route for told in seen}
    assert {f"{method} {path}" for method, path, _ in operations()} <= asked and {
        f"GET {path}" for path in drawn()
    } <= asked


class Heard:
    """A listener to what happens in a home, for as long as the others live."""

    def __init__(self, url: str, whose: Party) -> None:
        self._caller, self._url, self._text = whose, url, list[str]()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        headers = {"Authorization": f"Bearer {self._caller.owner}"}
        with (
            httpx.Client(base_url=self._url, timeout=None) as client,
            client.stream("GET", "/api/v1/events", headers=headers) as told,
        ):
            try:
                self._text.extend(told.iter_text())
            except httpx.HTTPError:
                pass  # the server has ended

    def end(self) -> list[Told]:
        self._thread.join(timeout=120)
        return [Told(self._caller.name, "events", 200, "".join(self._text))]


# -- what an id of the other's tells, and does ------------------------------------------------------------------------------


def check_apart(callers: list[Caller]) -> None:
    """An id of the other's is answered as one of nobody's is, and does nothing; halves of two browsers are no whole."""
    for one, other in (callers, callers[::-1]):
        other.learn()
        before, theirs = {kind: list(ids) for kind, ids in other.whose.ids.items()}, other.whose.ids
        nobodys = {kind: [scrambled(id) for id in ids] for kind, ids in theirs.items()}
        for method, path, about in operations():
            if "{id}" not in path and path not in (
                "/api/v1/diff",
                "/api/v1/restore",
                "/api/v1/noted/keep",
            ):
                continue
            said = []
            for ids in (theirs, nobodys):
                one.dice.seed(7)
                given = one.given(method, path, about, ids, whole=True)
                answer = one.ask(method, given.pop("path"), route=path, **given)
                text = answer.text if "event-stream" not in answer.headers["content-type"] else ""
                for id in filter(lambda id: len(id) > 9, itertools.chain(*ids.values())):  # changes have numbers
                    text = text.replace(id, "ID").replace(id[:12], "ID")
                said.append((answer.status_code, text))
            assert said[0] == said[1] and said[0][0] >= 400, (method, path, said)
        other.learn()
        assert other.whose.ids == before
        one.come_in()
        other.come_in()
        mixed = {**one.page, KEY: other.page[KEY]}
        for path in drawn():
            answer = one.ask("GET", one.filled(path, theirs), by=None, headers=mixed, route=path)
            assert answer.status_code == 401, path
        other.ask("POST", "/logout", by=None, headers=other.page)
        one.ask("POST", "/logout", by=None, headers=one.page)


def scrambled(id: str) -> str:
    """Another id of the same form."""
    dice = random.Random(id)
    return id[:1] + "".join(dice.choice("0123456789abcdef") if each in "0123456789abcdef" else each for each in id[1:])


def test_an_id_of_the_others_is_an_id_of_nobodys_and_halves_of_two_are_no_whole(
    cluster: Cluster, sealed: str, tmp_path: Path
) -> None:
    with settled(cluster, cluster.application, tmp_path / "log") as (_, callers):
        check_apart(callers)
    check_crossed([told for caller in callers for told in caller.seen], [caller.whose for caller in callers])


@pytest.mark.long
def test_nothing_crosses_by_any_route(cluster: Cluster, sealed: str, tmp_path: Path) -> None:
    live_beside(cluster, cluster.application, tmp_path / "log")


@pytest.mark.long
def test_nothing_crosses_by_any_route_where_row_policies_alone_hold(
    cluster: Cluster, sealed: str, tmp_path: Path
) -> None:
    live_beside(cluster, cluster.application, tmp_path / "log", without_conditions=True)


@pytest.mark.long
def test_nothing_crosses_by_any_route_through_pgbouncer(
    cluster: Cluster, sealed: str, tmp_path: Path, bouncer: str
) -> None:
    live_beside(cluster, bouncer, tmp_path / "log")
