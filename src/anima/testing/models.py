"""A model server on loopback, scripted: it speaks OpenAI Chat, OpenAI Responses and Anthropic Messages, plain and streamed.

Promise: each request takes the next step of the script and is kept with its path, headers and body, so that a test sees
what was really sent; faults look as those of the real services do. It listens on 127.0.0.1 alone and costs nothing.
Not here: what a program makes of the answers.

    with ModelServer([Spoken(calls=[("memory_search", {"query": "boat"})]), Spoken("It is at the marina.")]) as server:
        … server.url, server.key, server.requests …
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal

from anima.testing.loopback import Loopback

Fault = Literal["", "429", "500", "malformed", "cut", "silent", "overflow", "llama.cpp"]
KEY = "loopback-key"
_CHUNK = 12


@dataclass(frozen=True, slots=True)
class Spoken:
    """One step: what the model says and which tools it calls, or how the server fails. `cut` breaks off after the text,
    `silent` never answers, `overflow` says that the context is full in the words of each service."""

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    fault: Fault = ""
    tokens: int = 0  # what the server says the request had; 0: a quarter of its characters


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def prompt(self) -> str:
        """The system prompt, whichever way the protocol carries it."""
        if "input" in self.body:
            return str(self.body.get("instructions") or "")
        if self.path.endswith("/messages"):
            return _plain(self.body.get("system") or "")
        return "".join(_plain(m["content"]) for m in self.body["messages"] if m["role"] in ("system", "developer"))

    @property
    def said(self) -> str:
        """Everything but the prompt and the tools, as JSON: for a look whether something was sent."""
        messages = self.body.get("input") or self.body["messages"]
        return json.dumps([m for m in messages if m.get("role") not in ("system", "developer")], ensure_ascii=False)


def _plain(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


Step = Spoken | Callable[[Received], Spoken]


class ModelServer(Loopback):
    """The server. Made with a script; when that is used up, `then` is given for ever. With a `window`, a request of more
    characters than that overflows, whatever the script says."""

    def __init__(
        self,
        script: Iterable[Step] = (),
        *,
        then: Step = Spoken("I have nothing to add."),  # noqa: B008
        key: str = KEY,
        window: int = 0,
    ) -> None:
        self.key, self.requests = key, list[Received]()
        self._script, self._then, self._window = list(script), then, window
        self._mutex, self.released = threading.Lock(), threading.Event()
        super().__init__(_answering(self))

    @property
    def url(self) -> str:
        """The address for an OpenAI client; an Anthropic client leaves `/v1` away."""
        return f"{self.origin}/v1"

    def release(self) -> None:
        self.released.set()

    def next_for(self, asked: Received, size: int) -> Spoken:
        """The step for a request, which is kept."""
        with self._mutex:
            self.requests.append(asked)
            if self._window and size > self._window:
                return Spoken(fault="overflow")
            step = self._script.pop(0) if self._script else self._then
        return step(asked) if callable(step) else step


def _answering(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing: the requests are kept."""

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.casefold(): value for name, value in self.headers.items()}
            asked = Received(self.path.partition("?")[0], headers, json.loads(raw))
            try:
                self._answer(asked, server.next_for(asked, len(raw)), len(raw))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client had enough

        def _answer(self, asked: Received, reply: Spoken, size: int) -> None:
            given = asked.headers.get("x-api-key") or asked.headers.get("authorization", "").removeprefix("Bearer ")
            if given != server.key:
                return self._send(401, _WRONG_KEY[asked.path.endswith("/messages")])
            if reply.fault == "silent":
                server.released.wait()
                self.close_connection = True
                return None
            if reply.fault == "malformed":
                return self._send(200, '{"this is": no answer')
            if reply.fault in ("429", "500"):
                return self._send(int(reply.fault), _FAULTS[reply.fault])
            if reply.fault in ("overflow", "llama.cpp"):
                return self._send(400, _overflow(asked, reply.fault))
            made = _PROTOCOLS[asked.path.removeprefix("/v1")](asked, reply, reply.tokens or size // 4)
            if not asked.body.get("stream"):
                return self._send(200, json.dumps(made.whole))
            return self._stream(made.events, cut=reply.fault == "cut")

        def _send(self, status: int, body: str) -> None:
            data = body.encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            if status in (429, 500):
                self.send_header("x-should-retry", "false")  # what the services say where trying again is in vain
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, events: Sequence[str], *, cut: bool) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for event in events[: max(1, len(events) // 2)] if cut else events:
                self.wfile.write(event.encode())
                self.wfile.flush()
            self.close_connection = True

    return Answering


_WRONG_KEY = (
    json.dumps(
        {"error": {"message": "Incorrect API key provided", "type": "invalid_request_error", "code": "invalid_api_key"}}
    ),
    json.dumps({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}),
)
_FAULTS = {
    "429": json.dumps(
        {"error": {"message": "Rate limit reached", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}
    ),
    "500": json.dumps({"error": {"message": "The server had an error", "type": "server_error"}}),
}


def _overflow(asked: Received, fault: Fault) -> str:
    if fault == "llama.cpp":
        said = "request (9120 tokens) exceeds the available context size (8192 tokens), try increasing it"
        return json.dumps({"error": {"code": 400, "message": said, "type": "exceed_context_size_error", "n_ctx": 8192}})
    if asked.path.endswith("/messages"):
        said = "prompt is too long: 210000 tokens > 200000 maximum"
        return json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": said}})
    said = "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."
    error = {"message": said, "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}
    return json.dumps({"error": error})


# -- the three protocols -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Made:
    whole: Mapping[str, Any]
    events: Sequence[str]


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK))


def _event(data: Mapping[str, Any], *, named: bool = True) -> str:
    name = f"event: {data['type']}\n" if named else ""
    return f"{name}data: {json.dumps(data)}\n\n"


def _called(asked: Received, reply: Spoken) -> list[tuple[str, str, str]]:
    """(id, name, arguments) of each call; an id is never given twice in a conversation."""
    turn = len(asked.body.get("input") or asked.body["messages"])
    return [(f"call_{turn}_{n}", name, json.dumps(given)) for n, (name, given) in enumerate(reply.calls)]


def _chat(asked: Received, reply: Spoken, tokens: int) -> _Made:
    spent = len(reply.text) // 4 + 1
    usage = {"prompt_tokens": tokens, "completion_tokens": spent, "total_tokens": tokens + spent}
    calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": given}}
        for id, name, given in _called(asked, reply)
    ]
    ended = "tool_calls" if calls else "stop"
    base = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": asked.body["model"]}
    message = {"role": "assistant", "content": reply.text or None, **({"tool_calls": calls} if calls else {})}
    whole = {"index": 0, "message": message, "finish_reason": ended, "logprobs": None}

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event({**base, "object": "chat.completion.chunk", "choices": [choice]}, named=False)

    events = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": each}) for each in _pieces(reply.text))]
    events += [chunk({"tool_calls": [{"index": n, **call}]}) for n, call in enumerate(calls)]
    events += [
        chunk({}, ended),
        _event({**base, "object": "chat.completion.chunk", "choices": [], "usage": usage}, named=False),
    ]
    return _Made(
        {**base, "object": "chat.completion", "choices": [whole], "usage": usage}, [*events, "data: [DONE]\n\n"]
    )


def _responses(asked: Received, reply: Spoken, tokens: int) -> _Made:
    spent = len(reply.text) // 4 + 1
    usage = {
        "input_tokens": tokens,
        "output_tokens": spent,
        "total_tokens": tokens + spent,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    items: list[dict[str, Any]] = []
    if reply.text or not reply.calls:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    for id, name, given in _called(asked, reply):
        space, _, bare = name.rpartition("/")  # Codex calls the tools of an MCP server by its name and theirs
        call = {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": bare, "arguments": given}
        items.append({**call, **({"namespace": space} if space else {}), "status": "completed"})
    base = {"id": "resp_1", "object": "response", "created_at": 1_700_000_000, "model": asked.body["model"]}
    base |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None}
    whole = {**base, "status": "completed", "output": items, "usage": usage}
    told: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**base, "status": "in_progress", "output": []}}
    ]
    for index, item in enumerate(items):
        told += _item_events(index, item)
    told.append({"type": "response.completed", "response": whole})
    return _Made(whole, [_event({**each, "sequence_number": n}) for n, each in enumerate(told)])


def _item_events(index: int, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    at = {"output_index": index, "item_id": item["id"]}
    if item["type"] == "function_call":
        yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "arguments": ""}}
        yield {"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]}
        yield {
            "type": "response.function_call_arguments.done",
            **at,
            "name": item["name"],
            "arguments": item["arguments"],
        }
    else:
        (part,), at = item["content"], {**at, "content_index": 0}
        yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "content": []}}
        yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
        for piece in _pieces(part["text"]):
            yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": part}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _messages(asked: Received, reply: Spoken, tokens: int) -> _Made:
    spent = len(reply.text) // 4 + 1
    blocks: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text or not reply.calls else []
    for (id, name, _), (_, given) in zip(_called(asked, reply), reply.calls, strict=True):
        blocks.append({"type": "tool_use", "id": id, "name": name, "input": given})
    ended = "tool_use" if reply.calls else "end_turn"
    base = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked.body["model"], "stop_sequence": None}
    usage = {"input_tokens": tokens, "output_tokens": spent}
    begun = {**base, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    told: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(blocks):
        empty: dict[str, Any] = {"text": ""} if block["type"] == "text" else {"input": {}}
        told.append({"type": "content_block_start", "index": index, "content_block": block | empty})
        if block["type"] == "text":
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        else:
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        told += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        told.append({"type": "content_block_stop", "index": index})
    told.append({"type": "message_delta", "delta": {"stop_reason": ended, "stop_sequence": None}, "usage": usage})
    told.append({"type": "message_stop"})
    return _Made({**base, "content": blocks, "stop_reason": ended, "usage": usage}, [_event(each) for each in told])


_PROTOCOLS: dict[str, Callable[[Received, Spoken, int], _Made]] = {
    "/chat/completions": _chat,
    "/responses": _responses,
    "/messages": _messages,
}
