"""The embedder that asks a server, against a real server on loopback that behaves and misbehaves."""

from __future__ import annotations

import gzip
import random
import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.errors import BadArguments, BadConfig, MissingExtra
from anima.model import Embedder
from anima.search.embed import client, endpoint_for, provider_in
from anima.search.embed.client import (
    DOCUMENT_PATIENCE,
    LONGEST_REST,
    QUERY_PATIENCE,
    Breaker,
    ClientLimits,
    EmbedderDown,
    Endpoint,
    Patience,
    Prefixes,
    RemoteEmbedder,
    prefixes_for,
)
from fake_embeddings import (
    EmbeddingServer,
    Reply,
    Sleeps,
    hanging_up,
    saying,
    serving,
    silent,
    status,
    truncated,
    unless_longer_than,
    unused_port,
    vector_of,
    well,
    with_vectors,
)

KEY = "sk-CANARY-KEY-0123456789abcdef"
TEXT = "CANARY-TEXT in a private line"
NOON = datetime(2026, 5, 8, 12, 0, tzinfo=UTC)
OPEN_DESKS: list[Desk] = []


class Hand:
    """A clock that moves when it is pushed, and by `step` whenever it is read."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = NOON
        self.step = timedelta(seconds=step)

    def __call__(self) -> datetime:
        self.now += self.step
        return self.now

    def push(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Desk:
    """An embedder with everything a test wants to look at."""

    def __init__(self, url: str, *, clock: Hand | None = None, model: str = "fake", **limits: Any) -> None:
        self.clock, self.sleeps = clock or Hand(), Sleeps()
        self.endpoint = Endpoint(url=url, model=model, api_key=KEY)
        self.embedder: Embedder = RemoteEmbedder(
            self.endpoint, clock=self.clock, dice=random.Random(7), sleep=self.sleeps, limits=ClientLimits(**limits)
        )
        OPEN_DESKS.append(self)

    def embed(self, *texts: str, kind: Any = "document") -> np.ndarray:
        return self.embedder.embed(list(texts), kind=kind)

    def failure(self, *texts: str, kind: Any = "document") -> EmbedderDown:
        with pytest.raises(EmbedderDown) as caught:
            self.embed(*(texts or (TEXT,)), kind=kind)
        return caught.value


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with serving() as running:
        yield running


@pytest.fixture(autouse=True)
def desks_are_cleared() -> Iterator[None]:
    yield
    while OPEN_DESKS:
        OPEN_DESKS.pop().embedder.close()


def unit(text: str, dimension: int = 8) -> np.ndarray:
    vector = np.array(vector_of(text, dimension), dtype=np.float32)
    return np.asarray(vector / np.linalg.norm(vector))


# Answers


def test_rows_are_normalised_and_in_the_order_of_the_texts(server: EmbeddingServer) -> None:
    texts = [f"note {n}" for n in range(10)]

    rows = Desk(server.url, batch_texts=3).embed(*texts)

    assert rows.dtype == np.float32 and rows.shape == (10, 8)
    np.testing.assert_allclose(rows, [unit(text) for text in texts], atol=1e-6)
    assert [len(asked.texts) for asked in server.asked] == [3, 3, 3, 1]


def test_an_answer_out_of_order_is_put_in_order(server: EmbeddingServer) -> None:
    body = b'{"data": [{"index": 1, "embedding": [0, 3]}, {"index": 0, "embedding": [2, 0]}]}'
    server.replies.append(saying(body))

    assert Desk(server.url).embed("a", "b").tolist() == [[1, 0], [0, 1]]


def test_an_answer_without_indices_is_taken_as_it_stands(server: EmbeddingServer) -> None:
    server.replies.append(saying(b'{"data": [{"embedding": [0, 3]}, {"embedding": [2, 0]}]}'))

    assert Desk(server.url).embed("a", "b").tolist() == [[0, 1], [1, 0]]


def test_blank_texts_get_zeros_and_are_not_sent(server: EmbeddingServer) -> None:
    rows = Desk(server.url).embed("", "tea", " \n")

    assert server.asked[0].texts == ["tea"]
    assert not rows[0].any() and not rows[2].any()
    np.testing.assert_allclose(rows[1], unit("tea"), atol=1e-6)


def test_only_blank_texts_still_have_the_width_of_the_model(server: EmbeddingServer) -> None:
    assert Desk(server.url).embed("", " ").shape == (2, 8)


@pytest.mark.parametrize("host", ["☃.example", "a..b", "a" * 70])
def test_an_address_that_no_client_takes_is_a_provider_that_is_down(host: str) -> None:
    assert Desk(f"https://{host}/v1").failure().lasting


def test_no_texts_need_no_server() -> None:
    with unused_port() as port:
        assert Desk(f"http://127.0.0.1:{port}").embed().shape == (0, 0)


def test_a_vector_of_zeros_stays_zero_and_is_not_divided_by_nothing(server: EmbeddingServer) -> None:
    server.replies.append(saying(b'{"data": [{"index": 0, "embedding": [0, 0, 0]}]}'))

    assert Desk(server.url).embed("a").tolist() == [[0, 0, 0]]


def test_vectors_near_the_edge_of_float32_are_normalised(server: EmbeddingServer) -> None:
    server.replies.append(saying(b'{"data": [{"embedding": [3e38, 3e38]}, {"embedding": [1e-38, 0]}]}'))

    rows = Desk(server.url).embed("a", "b")

    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 1], atol=1e-5)


# What is sent


def test_prefixes_differ_for_documents_and_queries(server: EmbeddingServer) -> None:
    desk = Desk(server.url, model="nomic-embed-text")

    desk.embed("tea")
    desk.embed("tea", kind="query")

    assert [asked.texts for asked in server.asked] == [["search_document: tea"], ["search_query: tea"]]


def test_batches_keep_to_the_limit_of_characters(server: EmbeddingServer) -> None:
    Desk(server.url, batch_chars=10, text_chars=8).embed("aaaa", "bbbb", "cccc", "d" * 30)

    assert [asked.texts for asked in server.asked] == [["aaaa", "bbbb"], ["cccc"], ["d" * 8]]


def test_a_lone_surrogate_does_not_spoil_the_request(server: EmbeddingServer) -> None:
    assert Desk(server.url).embed("bad \ud800 text").shape == (1, 8)


def test_the_key_and_the_model_are_sent(server: EmbeddingServer) -> None:
    Desk(server.url, model="small").embed("tea")

    asked = server.asked[0]
    assert asked.path == "/v1/embeddings"
    assert {name.lower(): value for name, value in asked.headers.items()}["authorization"] == f"Bearer {KEY}"
    assert asked.body == {"model": "small", "input": ["tea"], "encoding_format": "float"}


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("http://localhost:11434", "http://localhost:11434/v1/embeddings"),
        ("http://localhost:11434/", "http://localhost:11434/v1/embeddings"),
        ("https://api.openai.com/v1", "https://api.openai.com/v1/embeddings"),
        ("https://gate.example/api/v3/", "https://gate.example/api/v3/embeddings"),
        ("https://gate.example/x/embeddings", "https://gate.example/x/embeddings"),
    ],
)
def test_the_address_is_completed(url: str, endpoint: str) -> None:
    assert Endpoint(url=url, model="m").address == endpoint


def test_what_a_server_calls_too_long_is_halved_until_it_fits(server: EmbeddingServer) -> None:
    server.always = unless_longer_than(1500, 8)
    long = "x" * 5000

    rows = Desk(server.url).embed("tea", long, "coffee")

    np.testing.assert_allclose(rows[[0, 2]], [unit("tea"), unit("coffee")], atol=1e-6)
    np.testing.assert_allclose(rows[1], unit("x" * 1250), atol=1e-6)


def test_every_text_of_a_batch_may_be_too_long(server: EmbeddingServer) -> None:
    server.always = unless_longer_than(1000, 8)

    rows = Desk(server.url).embed(*(str(n) * 3000 for n in range(10)))

    np.testing.assert_allclose(rows, [unit(str(n) * 750) for n in range(10)], atol=1e-6)


def test_a_server_that_refuses_everything_is_not_asked_without_end(server: EmbeddingServer) -> None:
    server.always = status(400)

    failure = Desk(server.url).failure(*(f"text {n}" for n in range(64)))

    assert "400" in failure.why
    assert len(server.asked) <= 12


# Failures that pass


def test_retry_after_is_honoured_on_429(server: EmbeddingServer) -> None:
    server.replies.extend([status(429, retry_after="7"), status(429, retry_after="3")])
    desk = Desk(server.url)

    np.testing.assert_allclose(desk.embed("tea"), [unit("tea")], atol=1e-6)

    first, second = desk.sleeps.taken
    assert 7 <= first <= 7.5 and 3 <= second <= 3.5


def test_retry_after_may_be_a_date(server: EmbeddingServer) -> None:
    server.replies.append(status(503, retry_after="Fri, 08 May 2026 12:00:09 GMT"))
    desk = Desk(server.url)

    desk.embed("tea")

    assert 9 <= desk.sleeps.taken[0] <= 9.5


@pytest.mark.parametrize("value", ["soon", "-5", "Fri, 08 May 2026 12:00:09", "9" * 5000, "", "nan", "١٢"])
def test_a_retry_after_that_makes_no_sense_is_ignored(server: EmbeddingServer, value: str) -> None:
    server.replies.append(status(429, retry_after=value.encode().decode("latin-1")))
    desk = Desk(server.url)

    desk.embed("tea")

    assert 0.25 <= desk.sleeps.taken[0] <= 0.5


def test_a_query_does_not_wait_for_a_long_retry_after_and_the_provider_is_left_alone(server: EmbeddingServer) -> None:
    server.replies.append(status(429, retry_after="120"))
    desk = Desk(server.url)

    desk.failure("tea", kind="query")
    desk.clock.push(119)
    desk.failure("tea", kind="query")
    assert len(server.asked) == 1 and not desk.sleeps.taken

    desk.clock.push(2)
    assert desk.embed("tea", kind="query").shape == (1, 8)


@pytest.mark.parametrize("reply", [status(500), status(502), status(503), truncated, hanging_up, saying(b'{"data": [')])
def test_a_passing_failure_is_tried_again_with_growing_jittered_pauses(server: EmbeddingServer, reply: Reply) -> None:
    server.replies.extend([reply, reply, reply])
    desk = Desk(server.url)

    np.testing.assert_allclose(desk.embed("tea"), [unit("tea")], atol=1e-6)

    bounds = [(0.25, 0.5), (0.5, 1.0), (1.0, 2.0)]
    assert len(desk.sleeps.taken) == 3
    assert all(low <= pause <= high for pause, (low, high) in zip(desk.sleeps.taken, bounds, strict=True))


def test_a_server_that_says_nothing_is_given_up_after_the_timeout(server: EmbeddingServer) -> None:
    server.always = silent
    hasty = replace(DOCUMENT_PATIENCE, attempts=3, timeout=0.1)

    assert "in time" in Desk(server.url, documents=hasty).failure().why
    assert server.heard(3) == 3


def test_a_query_that_ran_into_its_timeout_is_not_made_again(server: EmbeddingServer) -> None:
    server.always = silent
    hasty = replace(QUERY_PATIENCE, timeout=0.1)

    assert "in time" in Desk(server.url, queries=hasty).failure(kind="query").why
    assert server.heard(1) == 1


def test_a_server_that_talks_slowly_is_given_up_too(server: EmbeddingServer) -> None:
    desk = Desk(server.url, clock=Hand(step=70))

    assert "in time" in desk.failure().why


def test_a_refused_connection_is_a_provider_that_is_down() -> None:
    with unused_port() as port:
        desk = Desk(f"http://127.0.0.1:{port}/v1")

        assert "reached" in desk.failure().why
    assert len(desk.sleeps.taken) == DOCUMENT_PATIENCE.attempts - 1


def test_a_dropped_connection_between_two_calls_is_not_noticed(server: EmbeddingServer) -> None:
    desk = Desk(server.url)
    desk.embed("tea")
    server.replies.append(hanging_up)

    assert desk.embed("coffee", kind="query").shape == (1, 8)


# Failures that last


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        (status(401), "key"),
        (status(403), "key"),
        (status(404), "model"),
        (status(429, b'{"error": {"code": "insufficient_quota"}}'), "quota"),
        (status(307, location="http://127.0.0.1:1/"), "redirect"),
        (lambda exchange: exchange.send(200, gzip.compress(b"{}"), {"content-encoding": "gzip"}), "compressed"),
    ],
)
def test_what_cannot_pass_is_asked_once_and_then_left_alone(server: EmbeddingServer, reply: Reply, word: str) -> None:
    server.always = reply
    desk = Desk(server.url)

    first, second = desk.failure(), desk.failure()

    assert word in first.why and first.lasting and first.hint
    assert second.why == first.why
    assert len(server.asked) == 1 and not desk.sleeps.taken


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "JSON"),
        (b"<html>", "JSON"),
        (b"\xff\xfe", "JSON"),
        (b"[" * 100_000, "JSON"),
        (b"[]", "no vectors"),
        (b'{"data": null}', "no vectors"),
        (b'{"data": [1]}', "no vectors"),
        (b'{"data": []}', "0 vectors for 1"),
        (b'{"data": [{"embedding": [1]}, {"embedding": [2]}]}', "2 vectors for 1"),
        (b'{"data": [{"index": 1, "embedding": [1]}]}', "not a vector"),
        (b'{"data": [{"index": true, "embedding": [1]}]}', "not a vector"),
        (b'{"data": [{"embedding": []}]}', "not a vector"),
        (b'{"data": [{"embedding": ["1", "2"]}]}', "not a vector"),
        (b'{"data": [{"embedding": [[1], [2]]}]}', "not a vector"),
        (b'{"data": [{"embedding": [[1], 2]}]}', "not a vector"),
        (b'{"data": [{"embedding": [true, false]}]}', "not a vector"),
        (b'{"data": [{"embedding": [NaN, 1]}]}', "not a vector"),
        (b'{"data": [{"embedding": [1e400]}]}', "not a vector"),
        (b'{"data": [{"embedding": [1e39]}]}', "not a vector"),
        (b'{"data": [{"embedding": [' + b"9" * 400 + b"]}]}", "not a vector"),
        (b'{"data": [{"embedding": "AAAA"}]}', "not a vector"),
        (b'{"data": [{"embedding": "!!!!"}]}', "not a vector"),
        (b'{"data": [{"embedding": {"a": 1}}]}', "not a vector"),
        (b'{"data": [{}]}', "not a vector"),
    ],
)
def test_an_answer_that_is_not_what_was_asked_gives_no_vectors(server: EmbeddingServer, body: bytes, word: str) -> None:
    server.always = saying(body)

    assert word in Desk(server.url).failure().why


def test_two_items_of_the_same_index_are_not_taken_for_two_vectors(server: EmbeddingServer) -> None:
    server.always = saying(b'{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [2]}]}')

    assert "not a vector" in Desk(server.url).failure("a", "b").why


def test_vectors_of_different_lengths_are_refused(server: EmbeddingServer) -> None:
    server.always = with_vectors(lambda texts: [[1.0] * (at + 1) for at, _ in enumerate(texts)])

    assert "length" in Desk(server.url).failure("a", "b").why


def test_the_first_answer_pins_the_dimension(server: EmbeddingServer) -> None:
    desk = Desk(server.url)
    assert desk.embedder.dimension is None
    desk.embed("tea")
    assert desk.embedder.dimension == 8

    server.always = well(12)
    failure = desk.failure("coffee")

    assert "12" in failure.why and "8" in failure.why and failure.lasting
    assert desk.embedder.dimension == 8


@pytest.mark.parametrize("length", [None, 50_000_000])
def test_a_huge_answer_is_not_read_to_its_end(
    server: EmbeddingServer, length: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.always = lambda exchange: exchange.send(200, b"[" + b"1," * 500_000, length=length)
    monkeypatch.setattr(client, "ANSWER_BYTES", 10_000)
    desk = Desk(server.url)

    failure = desk.failure()

    assert "too large" in failure.why and failure.lasting
    assert len(server.asked) == 1


# Secrets


def test_no_redirect_is_followed_and_the_key_stays_home(server: EmbeddingServer) -> None:
    with serving() as elsewhere:
        server.always = status(308, location=f"{elsewhere.url}/embeddings")

        Desk(server.url).failure()

        assert elsewhere.asked == []


def test_a_proxy_of_the_environment_never_sees_the_key(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")

        Desk(server.url).embed("tea")

        assert proxy.asked == [] and len(server.asked) == 1


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422, 429, 500])
def test_neither_key_nor_text_stands_in_any_error(server: EmbeddingServer, code: int) -> None:
    echo = f'{{"error": {{"message": "{KEY} {TEXT}", "code": "{KEY}", "type": "{TEXT}"}}}}'
    server.always = status(code, echo.encode())
    desk = Desk(server.url)

    failure = desk.failure(TEXT)

    told = "".join(traceback.format_exception(failure)) + repr(failure) + str(failure.hint) + str(vars(failure))
    told += repr(desk.embedder) + repr(desk.endpoint)
    assert "CANARY" not in told
    assert str(server.server_port) not in str(failure)


def test_a_provider_s_own_word_for_the_error_is_passed_on(server: EmbeddingServer) -> None:
    server.always = status(500, b'{"error": {"code": "model_is_loading", "message": "CANARY"}}')

    assert Desk(server.url).failure().why == "it answered 500 (model_is_loading)"


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "ftp://host/v1"},
        {"url": "localhost:11434"},
        {"url": "http://"},
        {"url": "http://127.0.0.1:99999"},
        {"url": "http://[::1"},
        {"url": "https://ex ample/v1"},
        {"url": "https://example/v1\r\nx: y"},
        {"url": "https://me:CANARY-KEY@host/v1"},
        {"url": "https://host/v1?key=CANARY-KEY"},
        {"url": "http://example.org/v1"},
        {"url": "http://192.168.1.7/v1"},
        {"api_key": "CANARY-KEY\r\nx: y"},
        {"api_key": "CANARY-KEY é"},
        {"model": " "},
    ],
)
def test_settings_that_cannot_work_are_refused_without_quoting_them(settings: dict[str, Any]) -> None:
    good: dict[str, Any] = {"url": "https://host/v1", "model": "m", "api_key": KEY}

    with pytest.raises(BadConfig) as caught:
        Endpoint(**good | settings)

    assert "CANARY-KEY" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("url", ["http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1", "https://example.org"])
def test_a_key_may_go_to_this_machine_or_over_https(url: str) -> None:
    assert Endpoint(url=url, model="m", api_key=KEY).api_key == KEY


def test_one_text_instead_of_a_list_is_refused(server: EmbeddingServer) -> None:
    desk = Desk(server.url)

    with pytest.raises(BadArguments):
        desk.embedder.embed("tea", kind="document")
    with pytest.raises(BadArguments):
        desk.embed("tea", kind="question")
    assert server.asked == []


# The breaker


def test_a_provider_that_keeps_failing_is_left_alone_and_found_again(server: EmbeddingServer) -> None:
    server.always = status(500)
    desk = Desk(server.url, failures=4, rest=30.0)

    for _ in range(10):
        assert "500" in desk.failure(kind="query").why
    assert len(server.asked) == 4

    desk.clock.push(31)
    desk.failure(kind="query")
    assert len(server.asked) == 5

    server.always = None
    desk.failure(kind="query")
    desk.clock.push(31)
    assert desk.embed("tea", kind="query").shape == (1, 8)
    assert desk.embed("tea", kind="query").shape == (1, 8)


def test_what_was_refused_for_its_length_does_not_open_the_breaker(server: EmbeddingServer) -> None:
    server.always = status(400)
    desk = Desk(server.url, failures=1)
    desk.failure("tea")
    server.always = None

    assert desk.embed("tea").shape == (1, 8)


def test_a_refusal_for_length_shows_that_the_provider_is_back(server: EmbeddingServer) -> None:
    server.replies.extend([status(404), status(400)])
    desk = Desk(server.url)
    desk.failure("tea")
    desk.clock.push(31)
    desk.failure("tea")

    assert desk.embed("tea").shape == (1, 8)


def test_an_open_breaker_lets_one_of_many_threads_try() -> None:
    clock = Hand()
    breaker = Breaker(clock=clock, failures=1, rest=30.0)
    breaker.failed()
    clock.push(30)
    gate, admitted = threading.Barrier(8), []

    def ask() -> None:
        gate.wait()
        admitted.append(breaker.admit())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(admitted) == [False] * 7 + [True]


def test_a_trial_that_never_reports_back_costs_one_rest() -> None:
    clock = Hand()
    breaker = Breaker(clock=clock, failures=1, rest=30.0)
    breaker.failed()
    clock.push(30)

    assert breaker.admit() and not breaker.admit()
    clock.push(30)
    assert breaker.admit()


def test_a_success_in_between_starts_the_count_anew() -> None:
    breaker = Breaker(clock=Hand(), failures=2, rest=30.0)
    for _ in range(5):
        breaker.failed()
        breaker.succeeded()

    assert breaker.admit()


def test_a_clock_that_jumps_back_does_not_keep_the_breaker_open() -> None:
    clock = Hand()
    breaker = Breaker(clock=clock, failures=1, rest=30.0)
    breaker.failed()
    clock.push(-86_400)

    assert breaker.admit()


def test_no_rest_is_longer_than_an_hour() -> None:
    clock = Hand()
    breaker = Breaker(clock=clock, failures=1, rest=30.0)
    breaker.failed(rest=10**9)
    clock.push(LONGEST_REST)

    assert breaker.admit()


@given(st.lists(st.sampled_from(["fail", "succeed", "wait"]), max_size=60))
def test_the_breaker_is_open_exactly_after_enough_failures_in_a_row(events: list[str]) -> None:
    clock = Hand()
    breaker, row, is_open = Breaker(clock=clock, failures=3, rest=10.0), 0, False
    for event in events:
        if event == "wait":
            clock.push(10)
        elif breaker.admit():
            row = row + 1 if event == "fail" else 0
            is_open = row >= 3
            breaker.failed() if event == "fail" else breaker.succeeded()
        assert (breaker._opened is not None) == is_open


@given(
    st.integers(0, 2**20),
    st.sampled_from([DOCUMENT_PATIENCE, QUERY_PATIENCE]),
    st.integers(0, 10_000),
    st.floats(0, 1e6),
)
def test_a_pause_is_bounded_and_never_shorter_than_asked(
    seed: int, patience: Patience, attempt: int, asked: float
) -> None:
    dice = random.Random(seed)

    assert 0 < patience.pause(attempt, dice=dice, asked=None) <= patience.longest_pause
    assert asked <= patience.pause(attempt, dice=dice, asked=asked) <= asked + patience.first_pause


def test_a_missing_client_names_the_part_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)

    with pytest.raises(MissingExtra) as caught:
        Desk("http://localhost:1")
    assert caught.value.extra == "http"


def test_many_threads_share_one_embedder(server: EmbeddingServer) -> None:
    desk, rows = Desk(server.url), {}

    def ask(number: int) -> None:
        rows[number] = desk.embed(f"text {number}")[0]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    np.testing.assert_allclose([rows[n] for n in range(12)], [unit(f"text {n}") for n in range(12)], atol=1e-6)


def test_a_closed_embedder_opens_again_when_it_is_needed(server: EmbeddingServer) -> None:
    desk = Desk(server.url)
    desk.embed("tea")
    desk.embedder.close()
    desk.embedder.close()

    assert desk.embed("tea").shape == (1, 8)


# The environment


def test_a_key_alone_chooses_no_provider() -> None:
    assert provider_in({"OPENAI_API_KEY": KEY, "NEAR_EMBEDDING_API_KEY": KEY}) == ""


def test_openai_from_the_environment() -> None:
    env = {"EMBEDDING_PROVIDER": " OpenAI ", "OPENAI_API_KEY": f"{KEY}\n"}

    endpoint = endpoint_for(provider_in(env), env)

    assert endpoint.address == "https://api.openai.com/v1/embeddings"
    assert (endpoint.model, endpoint.api_key, endpoint.label) == (
        "text-embedding-3-small",
        KEY,
        "openai:text-embedding-3-small",
    )
    assert KEY not in repr(endpoint)


def test_an_openai_style_server_of_one_s_own_needs_no_key() -> None:
    env = {"OPENAI_BASE_URL": "http://localhost:1234/v1", "EMBEDDING_MODEL": "bge-small-en-v1.5"}

    endpoint = endpoint_for("openai", env)

    assert endpoint.api_key is None and endpoint.address == "http://localhost:1234/v1/embeddings"
    assert endpoint.model == "bge-small-en-v1.5"


def test_ollama_from_the_environment_has_its_defaults() -> None:
    plain = endpoint_for("ollama", {"OPENAI_API_KEY": KEY})
    told = endpoint_for("ollama", {"OLLAMA_BASE_URL": "http://box:11434/", "OLLAMA_EMBEDDING_MODEL": "all-minilm"})

    assert (plain.address, plain.model) == ("http://localhost:11434/v1/embeddings", "nomic-embed-text")
    assert (told.address, told.model) == ("http://box:11434/v1/embeddings", "all-minilm")
    assert plain.api_key is told.api_key is None


def test_near_from_the_environment_sends_its_own_key() -> None:
    env = {"EMBEDDING_PROVIDER": "nearai", "NEAR_EMBEDDING_API_KEY": KEY, "OPENAI_API_KEY": "sk-other"}

    endpoint = endpoint_for(provider_in(env), env)

    assert endpoint.api_key == KEY and endpoint.address.startswith("https://cloud-api.near.ai/")


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("", KEY),
        ("https://api.openai.com/v1", KEY),
        ("https://api.openai.com:443/other", KEY),
        ("https://api.openai.com:8443/v1", None),
        ("http://localhost/v1", None),
        ("https://api.openai.com.example/v1", None),
        ("https://cloud-api.near.ai/v1", "sk-near"),
    ],
)
def test_a_key_goes_along_only_to_the_address_it_is_for(url: str, key: str | None) -> None:
    env = {"OPENAI_API_KEY": KEY, "NEAR_EMBEDDING_API_KEY": "sk-near"}

    assert endpoint_for("openai", url=url, model="", env=env).api_key == key


def test_a_key_that_is_bound_to_a_server_goes_to_no_other() -> None:
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "https://gate.example/v1"}

    assert endpoint_for("openai", env).api_key == KEY
    assert endpoint_for("openai", url="https://gate.example/v2", model="", env=env).api_key == KEY
    assert endpoint_for("openai", url="https://api.openai.com/v1", model="", env=env).api_key is None


@pytest.mark.parametrize(
    ("env", "where"),
    [
        ({"EMBEDDING_PROVIDER": "openia"}, "EMBEDDING_PROVIDER"),
        ({"EMBEDDING_PROVIDER": "openai"}, "OPENAI_API_KEY"),
        ({"EMBEDDING_PROVIDER": "near", "OPENAI_API_KEY": KEY}, "NEAR_EMBEDDING_API_KEY"),
    ],
)
def test_a_wrong_environment_names_the_variable(env: dict[str, str], where: str) -> None:
    with pytest.raises(BadConfig) as caught:
        endpoint_for(provider_in(env), env)

    assert caught.value.where == where


def test_a_document_prefix_changes_the_name_vectors_are_stored_under() -> None:
    names = [Endpoint(url="http://localhost", model=model).label for model in ("m", "bge-small-en", "e5-small-v2")]

    assert names[:2] == ["openai:m", "openai:bge-small-en"]
    assert names[2].startswith("openai:e5-small-v2+")


@pytest.mark.parametrize("model", ["text-embedding-3-small", "multilingual-e5-large-instruct", "all-MiniLM-L6-v2", ""])
def test_models_that_want_no_prefix_get_none(model: str) -> None:
    assert prefixes_for(model) == Prefixes()
