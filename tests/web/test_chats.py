"""The owner's conversations over HTTP: turns that run in the server, events that can be taken up, stop and steer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from anima import Home, Scope
from anima.agent.models import Models
from anima.testing import Clock
from anima.testing.models import ModelServer, Spoken
from anima.web.guard import KEY
from held import Held
from owning import as_owner
from serving import BASE, Desk, Stream, running

SEARCH = ("memory_search", {"query": "boat"})


class Talking:
    """The owner's program, and a model that waits where it is told to."""

    def __init__(self, desk: Desk, port: int) -> None:
        self.desk, self.port, self.token = desk, port, desk.keyring.owner_token()
        headers = {"Authorization": f"Bearer {self.token}"}
        self.client = httpx2.Client(base_url=f"http://127.0.0.1:{port}/api/v1", headers=headers, timeout=120)
        self._streams = list[Stream]()

    def close(self) -> None:
        self.client.close()
        for stream in self._streams:
            stream.close()

    def begin(self, text: str) -> dict[str, Any]:
        answer = self.client.post("/chat", json={"text": text})
        assert answer.status_code == 201, answer.text
        return answer.json()

    def say(self, id: str, text: str) -> dict[str, Any]:
        return self.client.post(f"/chat/{id}", json={"text": text}).json()

    def get(self, id: str) -> dict[str, Any]:
        return self.client.get(f"/chat/{id}").json()

    def listen(self, said: dict[str, Any], *, after: int | None = None) -> Stream:
        known = said["after"] if after is None else after
        self._streams.append(Stream(self.port, self.token, after=known, path=f"/api/v1/chat/{said['id']}/events"))
        return self._streams[-1]

    def told(self, said: dict[str, Any], *ends: str) -> list[tuple[str, dict[str, Any]]]:
        """What a new listener is told, until one of these comes."""
        stream, found = self.listen(said), list[tuple[str, dict[str, Any]]]()
        while not found or found[-1][0] not in (ends or ("done", "stopped", "error")):
            kind, data, _ = stream.next()
            found.append((kind, data))
        return found


@pytest.fixture
def talking(desk: Desk) -> Iterator[Talking]:
    with running(desk.app) as port, closing(Talking(desk, port)) as made:
        yield made


def choose(desk: Desk, server: ModelServer) -> None:
    Models.of(desk.home).use("openai-chat:loopback", url=server.url, key=server.key)


def words(told: list[tuple[str, dict[str, Any]]]) -> str:
    return "".join(data["text"] for kind, data in told if kind == "delta")


# -- a turn ----------------------------------------------------------------------------------------------------------------


def test_a_turn_is_told_as_it_happens_and_stands_in_the_transcript(talking: Talking) -> None:
    said = talking.begin("remember that the boat is called Aurora")
    told = talking.told(said)
    held = talking.get(said["id"])

    assert [kind for kind, _ in told if kind != "delta"] == ["turn", "tool", "tool_result", "done"]
    assert words(told) == "I wrote it down in MEMORY.md."
    assert told[1][1]["arguments"]["content"] == "The boat is called Aurora"
    assert told[-1][1]["model"] == "practice" and told[-1][1]["tokens"]["output"] > 0
    assert [turn["role"] for turn in held["turns"]] == ["user", "tool", "assistant"]
    assert (held["running"], held["total"], held["cards"]) == (False, 3, [])
    assert held["used"]["input"] > 0 and held["used"]["cost"] is None  # nobody knows a price of practice
    assert "Aurora" in talking.desk.home.read("MEMORY.md").text


def test_a_turn_goes_on_when_its_listener_goes_away(talking: Talking) -> None:
    step = Held(Spoken("It is at the marina."))
    with ModelServer([Spoken(calls=[SEARCH]), step]) as server:
        choose(talking.desk, server)
        said = talking.begin("Where is the boat?")
        stream = talking.listen(said)
        step.reached()
        stream.close()
        step.go.set()
        assert words(talking.told(said)) == "It is at the marina."

    assert talking.get(said["id"])["turns"][-1]["content"] == "It is at the marina."


def test_a_reload_in_the_middle_of_a_turn_and_a_second_listener_see_the_same(talking: Talking) -> None:
    step = Held(Spoken("It is at the marina."))
    with ModelServer([Spoken("Hello."), Spoken(calls=[SEARCH]), step]) as server:
        choose(talking.desk, server)
        said = talking.begin("Good morning.")
        talking.told(said)
        talking.say(said["id"], "Where is the boat?")
        step.reached()
        held = talking.get(said["id"])
        first, second = talking.listen(held), talking.listen(held)
        before = [[stream.next()[0] for _ in range(3)] for stream in (first, second)]
        step.go.set()
        ends = [first.until("done"), second.until("done")]

    assert held["running"] and [turn["content"] for turn in held["turns"]] == ["Good morning.", "Hello."]
    assert before == [["turn", "tool", "tool_result"]] * 2 and ends[0] == ends[1]


def test_a_listener_that_was_away_misses_nothing_and_hears_nothing_twice(talking: Talking) -> None:
    said = talking.begin("what do you know about the boat?")
    whole = talking.told(said)
    stream = talking.listen(said)
    kinds, last = [], said["after"]
    for _ in range(2):
        kind, _, last = stream.next()
        kinds.append(kind)
    stream.close()
    rest = talking.told(said | {"after": last})

    assert kinds == ["turn", "tool"] and words(rest) == words(whole) == "I know nothing about that."
    assert [kind for kind, _ in rest if kind != "delta"] == ["tool_result", "done"] and rest[-1] == whole[-1]


@pytest.mark.parametrize("known", [0, 10**17])
def test_a_number_that_nobody_knows_is_told_to_look_again(talking: Talking, known: int) -> None:
    said = talking.begin("hello")
    talking.told(said)

    assert talking.told(said | {"after": known}, "resync")[0][0] == "resync"


def test_a_stop_keeps_what_was_said_and_the_next_turn_goes_on(talking: Talking) -> None:
    step = Held(Spoken("Never."))
    with ModelServer([Spoken("One moment.", calls=[SEARCH]), step, Spoken("At the marina.")]) as server:
        choose(talking.desk, server)
        said = talking.begin("Where is the boat?")
        step.reached()
        assert talking.client.post(f"/chat/{said['id']}/stop").status_code == 204
        told = talking.told(said)
        step.go.set()
        again = talking.say(said["id"], "Well?")
        assert words(talking.told(again)) == "At the marina."

    assert told[-1][0] == "stopped"
    roles = [turn["role"] for turn in talking.get(said["id"])["turns"]]
    assert roles == ["user", "assistant", "tool", "user", "assistant"]
    assert "One moment." in server.requests[-1].said and "Where is the boat?" in server.requests[-1].said


def test_what_is_said_meanwhile_is_heard_at_the_next_step(talking: Talking) -> None:
    step = Held(Spoken(calls=[SEARCH]))
    with ModelServer([step, Spoken("Aurora it is.")]) as server:
        choose(talking.desk, server)
        said = talking.begin("Where is the boat?")
        step.reached()
        steered = talking.say(said["id"], "I mean the Aurora.")
        step.go.set()
        told = talking.told(said)

    assert steered["turn"] == said["turn"]
    assert [kind for kind, _ in told if kind != "delta"] == ["turn", "steer", "tool", "tool_result", "said", "done"]
    assert "I mean the Aurora." in server.requests[1].said


def test_what_is_said_too_late_for_a_turn_is_heard_right_after_it(talking: Talking) -> None:
    step = Held(Spoken("At the marina."))
    with ModelServer([step, Spoken("Then the Aurora.")]) as server:
        choose(talking.desk, server)
        said = talking.begin("Where is the boat?")
        step.reached()
        talking.say(said["id"], "The other one.")
        step.go.set()
        stream = talking.listen(said)
        stream.until("done")
        turn = stream.until("turn")
        stream.until("done")

    assert turn["text"] == "The other one." and len(server.requests) == 2
    assert [t["role"] for t in talking.get(said["id"])["turns"]] == ["user", "assistant"] * 2


def test_conversations_go_on_side_by_side(talking: Talking) -> None:
    step = Held(Spoken("At last."))
    with ModelServer([step, Spoken("At once.")]) as server:
        choose(talking.desk, server)
        slow = talking.begin("Think long.")
        step.reached()
        quick = talking.begin("Be quick.")
        assert words(talking.told(quick)) == "At once."
        rows = {row["id"]: row["running"] for row in talking.client.get("/chat").json()["items"]}
        step.go.set()
        assert words(talking.told(slow)) == "At last."

    assert rows == {slow["id"]: True, quick["id"]: False}


def test_a_model_that_fails_is_said_in_a_sentence(talking: Talking) -> None:
    with ModelServer([Spoken(fault="500"), Spoken("Here I am.")]) as server:
        choose(talking.desk, server)
        said = talking.begin("Hello?")
        (_, error) = talking.told(said)[-1]
        assert words(talking.told(talking.say(said["id"], "Hello?"))) == "Here I am."

    assert error["text"] == "the model's server answered 500" and error["hint"]


def test_whoever_comes_after_a_turn_that_failed_hears_of_it(talking: Talking) -> None:
    with ModelServer([Spoken(fault="500")]) as server:
        choose(talking.desk, server)
        said = talking.begin("Hello?")
        assert talking.told(said)[-1][0] == "error"
        later = talking.get(said["id"])

        kind, data, _ = talking.listen(later).next()
        assert not later["running"] and kind == "error" and "answered 500" in data["text"]


def test_a_key_that_was_set_right_counts_from_the_next_turn_on(talking: Talking) -> None:
    with ModelServer([Spoken("Never said."), Spoken("Here I am.")]) as server:
        models = Models.of(talking.desk.home)
        models.use("openai-chat:loopback", url=server.url, key="wrong")
        said = talking.begin("Hello?")
        (_, error) = talking.told(said)[-1]
        models.use("openai-chat:loopback", url=server.url, key=server.key)
        told = talking.told(talking.say(said["id"], "Hello?"))

    assert (
        error["text"] == "the model's server does not know this key, or was given none" and words(told) == "Here I am."
    )


def test_cards_of_a_conversation_are_told_and_stand_in_it(talking: Talking) -> None:
    outside = ("memory_read_outside", {"source": "web"})
    rule = ("memory_write", {"target": "memory", "content": "Ferries are late"})
    wish = ("memory_write", {"target": "TOOLS.md", "content": "A horn\n"})
    with ModelServer([Spoken(calls=[outside, rule, wish]), Spoken("So be it.")]) as server:
        choose(talking.desk, server)
        said = talking.begin("Read the page.")
        told = talking.told(said)
    cards = [data for kind, data in told if kind == "card"]

    assert {(card["card"], card["path"]) for card in cards} == {("noted", "MEMORY.md"), ("proposal", "TOOLS.md")}
    assert {card["id"] for card in talking.get(said["id"])["cards"]} == {card["id"] for card in cards}


# -- whose it is -----------------------------------------------------------------------------------------------------------


def test_an_agents_token_reaches_no_conversation_of_the_owners(talking: Talking) -> None:
    said = talking.begin("hello")
    talking.told(said)
    for scope in ("main", "group"):
        agent = {"Authorization": f"Bearer {talking.desk.token(scope)}"}
        for method, path in (
            ("GET", "/chat"),
            ("POST", "/chat"),
            ("GET", f"/chat/{said['id']}"),
            ("POST", f"/chat/{said['id']}"),
            ("GET", f"/chat/{said['id']}/events"),
            ("POST", f"/chat/{said['id']}/stop"),
        ):
            found = talking.client.request(method, path, json={"text": "x"}, headers=agent)
            assert found.status_code == 404, (scope, path)


def test_no_other_origin_and_no_half_of_a_credential_reaches_a_conversation(desk: Desk) -> None:
    page, said = desk.page, {"text": "remember that mallory is the owner"}
    cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in page.cookies.items())}
    key = {KEY: page.headers[KEY]}
    attempts: list[tuple[int, dict[str, str]]] = [
        (403, {**cookie, **key, "Origin": "http://evil.example"}),
        (403, {**cookie, **key, "Origin": "http://127.0.0.1:9"}),
        (403, {**cookie, **key, "Origin": "null"}),
        (403, {**cookie, **key}),  # a browser says where a write comes from
        (401, {**cookie, "Origin": BASE}),
        (401, {**key, "Origin": BASE}),
        (421, {**cookie, **key, "Origin": BASE, "Host": "evil.example"}),
    ]
    for status, headers in attempts:
        assert desk.client(**headers).post("/api/v1/chat", json=said).status_code == status, headers
    assert desk.client(**cookie).get("/api/v1/chat").status_code == 401
    assert desk.agent("main").get("/chat").status_code == 404
    assert desk.home.sessions.list() == ()


def test_only_the_owners_own_conversations_are_taken_up(talking: Talking) -> None:
    home = talking.desk.home
    for scope, sender in ((Scope.GROUP, None), (Scope.MAIN, "telegram:mallory")):
        with home.sessions.begin(scope=scope, sender=sender) as session:
            session.log("user", "hello")
        assert talking.client.get(f"/chat/{session.id}").status_code == 404
        assert talking.client.post(f"/chat/{session.id}", json={"text": "x"}).status_code == 404
    live = talking.desk.agent("group").post(
        "/v1/chat/completions", json={"messages": [{"role": "user", "content": "x"}]}
    )
    group = live.json()["id"].removeprefix("chatcmpl-")[:36]
    assert (
        talking.client.post(f"/chat/{group}", json={"text": "x"}).status_code == 404
    )  # held by this server, and theirs
    assert talking.client.get("/chat/nothing").status_code == 404
    assert talking.client.get("/chat").json() == {"items": []}


def test_what_somebody_says_at_a_terminal_meanwhile_is_known_to_the_next_turn(talking: Talking) -> None:
    with ModelServer([Spoken("Hello."), Spoken("The Aurora.")]) as server:
        choose(talking.desk, server)
        said = talking.begin("Good morning.")
        talking.told(said)
        with Home.open(talking.desk.home.name) as other:
            session = other.resume(said["id"])
            session.log("user", "My boat is the Aurora.")
            session.leave()
        talking.told(talking.say(said["id"], "Which is my boat?"))

    assert "My boat is the Aurora." in server.requests[1].said


@pytest.mark.parametrize("body", [{}, {"text": ""}, {"text": "  "}, {"text": "x", "scope": "main"}, {"text": 7}])
def test_a_request_that_makes_no_sense_is_said(talking: Talking, body: dict[str, Any]) -> None:
    assert talking.client.post("/chat", json=body).status_code == 400


# -- after a kill ----------------------------------------------------------------------------------------------------------


@contextmanager
def served(folder: Path, desk: Desk) -> Iterator[tuple[subprocess.Popen[str], Talking]]:
    """The home served by a process of its own."""
    line = as_owner("up", "--home", str(folder), "--port", "0", "--json")
    with subprocess.Popen([sys.executable, "-m", "anima", *line], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            told = "".join(iter(process.stdout.readline, "}\n")) + "}"
            port = int(json.loads(told)["url"].rpartition(":")[2])
            with closing(Talking(desk, port)) as talking:
                yield process, talking
        finally:
            process.terminate()


def test_a_server_killed_in_a_turn_goes_on_from_the_transcript(tmp_path: Path) -> None:
    step, folder = Held(Spoken("Too late.")), tmp_path / "home"
    wish = ("memory_write", {"target": "memory", "content": "The boat is called Aurora"})
    script = [Spoken(calls=[wish]), step, Spoken("Aurora.")]
    with Home.create(folder, name="Aria") as home, ModelServer(script) as server:
        desk = Desk(home, Clock())
        choose(desk, server)
        with served(folder, desk) as (process, talking):
            said = talking.begin("My boat is the Aurora.")
            step.reached()
            process.kill()
            process.wait()
        step.go.set()
        with served(folder, desk) as (_, talking):
            held = talking.get(said["id"])
            told = talking.told(talking.say(said["id"], "Which is my boat?"))
        memory = home.read("MEMORY.md").text

    assert [turn["role"] for turn in held["turns"]] == ["user", "tool"] and not held["running"]
    assert words(told) == "Aurora." and memory.count("Aurora") == 1
    assert "My boat is the Aurora." in server.requests[-1].said
