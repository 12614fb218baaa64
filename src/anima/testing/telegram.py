"""A Bot API server on loopback, scripted: what people write comes in by long polling, and what the bot sends is kept.

Promise: it behaves as Telegram does where a bot can tell: numbers grow, what is not confirmed comes again, a text of more
than 4,096 UTF-16 units, a wrong token or a chat that is gone is refused in Telegram's words. Faults are put in a queue for a
method: too many requests, a cut connection before or after the deed. It listens on 127.0.0.1 alone.

    with BotServer() as bot:
        … Telegram(bot.token, url=bot.url) …
        bot.says("hello", sender=7)
        assert bot.text_to(7) == "Hello."
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal

from anima.testing.loopback import Loopback

TOKEN = "4711:loopback-token"
NAME = "aria_bot"
PATIENCE = 30.0  # seconds that a test waits for something at most


@dataclass(frozen=True, slots=True)
class BotFault:
    """How a method fails once. `cut` breaks the connection before anything is done, `lost` afterwards."""

    code: int = 0
    description: str = ""
    parameters: dict[str, Any] | None = None
    break_: Literal["", "cut", "lost"] = ""


TOO_MANY = BotFault(429, "Too Many Requests: retry after 3", {"retry_after": 3})
CUT, LOST = BotFault(break_="cut"), BotFault(break_="lost")


class BotServer(Loopback):
    """The server, with one bot."""

    def __init__(self, *, token: str = TOKEN, username: str = NAME) -> None:
        self.token, self.username, self.id = token, username, int(token.partition(":")[0])
        self.calls = list[tuple[str, dict[str, Any]]]()  # everything that was done, in order
        self.polls = 0
        self._updates = dict[int, dict[str, Any]]()
        self._faults = dict[str, list[BotFault]]()
        self._next, self._message, self._is_closed = 1_000, 1, False
        self._changed = threading.Condition()
        super().__init__(_answering(self))

    @property
    def url(self) -> str:
        return self.origin

    def release(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    # -- what people do ---------------------------------------------------------------------------------------------------

    def push(self, update: dict[str, Any], *, number: int = 0) -> int:
        """An update as Telegram would make it; its number, or the one that is given, again."""
        with self._changed:
            self._next = max(self._next + 1, number + 1)
            number = number or self._next
            self._updates[number] = {"update_id": number, **update}
            self._changed.notify_all()
            return number

    def message(
        self, text: str = "", *, sender: int, group: int = 0, name: str = "Ana", topic: int = 0, **more: Any
    ) -> dict[str, Any]:
        """A message as it stands in an update: alone with the bot, or in a group. `@name` and `/command` are entities."""
        self._message += 1
        kind = {"id": group, "type": "supergroup" if str(group).startswith("-100") else "group", "title": "Club"}
        made = {
            "message_id": self._message,
            "date": 1_778_268_600,
            "from": {"id": sender, "is_bot": False, "first_name": name},
            "chat": kind if group else {"id": sender, "type": "private", "first_name": name},
        }
        made |= {"is_topic_message": True, "message_thread_id": topic} if topic else {}
        made |= {"text": text, "entities": _entities(text)} if text else {}
        return made | more

    def says(self, text: str = "", *, sender: int, group: int = 0, **more: Any) -> int:
        """Somebody writes; the number of the update."""
        return self.push({"message": self.message(text, sender=sender, group=group, **more)})

    def presses(self, data: str, *, sender: int, message: dict[str, Any] | None = None, chat: int = 0) -> int:
        """Somebody presses a button under a message of the bot's, or says so."""
        where = {"id": chat or sender, "type": "group" if chat < 0 else "private"}
        under = message or {"message_id": 1, "date": 0, "chat": where}
        whose = {"id": sender, "is_bot": False, "first_name": "Ana"}
        return self.push({"callback_query": {"id": f"q{self._next}", "from": whose, "message": under, "data": data}})

    def fails(self, method: str, *faults: BotFault) -> None:
        """The next calls of a method fail so, one after the other."""
        with self._changed:
            self._faults.setdefault(method, []).extend(faults)

    def mend(self) -> None:
        """Nothing fails any more."""
        with self._changed:
            self._faults.clear()

    # -- what the bot did -------------------------------------------------------------------------------------------------

    def sent(self, chat: int | None = None) -> list[dict[str, Any]]:
        """The messages that were sent, to one chat or all."""
        with self._changed:
            found = [body for method, body in self.calls if method == "sendMessage"]
        return [body for body in found if chat is None or body["chat_id"] == chat]

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Waits until something is so. Raises AssertionError where it does not come to that."""
        end = time.monotonic() + PATIENCE
        while not is_done():  # of things beside this server, too
            assert time.monotonic() < end, f"{self.calls[-5:]}"
            with self._changed:
                self._changed.wait(0.1)

    def text_to(self, chat: int, *, after: int = 0) -> str:
        """The next message to a chat that is not among the first `after`."""
        self.wait(lambda: len(self.sent(chat)) > after)
        return str(self.sent(chat)[after]["text"])

    def confirmed(self, number: int) -> None:
        """Waits until an update, and all before it, will not come again."""
        self.wait(lambda: not any(each <= number for each in self._updates))

    # -- answering --------------------------------------------------------------------------------------------------------

    def take(self, method: str, body: dict[str, Any]) -> dict[str, Any] | BotFault:
        """The answer to a call, which is kept."""
        with self._changed:
            if faults := self._faults.get(method):
                if (fault := faults.pop(0)).break_ != "lost":
                    self._changed.notify_all()
                    return fault
                self._done(method, body)
                return fault
            return self._done(method, body)

    def _done(self, method: str, body: dict[str, Any]) -> dict[str, Any] | BotFault:
        result: Any = True
        if method == "getUpdates":
            return self._polled(body)
        if method == "getMe":
            result = {"id": self.id, "is_bot": True, "first_name": "Aria", "username": self.username}
        elif method in ("sendMessage", "editMessageText"):
            size = len(body["text"].encode("utf-16-le")) // 2
            if not 0 < size <= 4_096:
                return BotFault(
                    400, "Bad Request: message is too long" if size else "Bad Request: message text is empty"
                )
            self._message += method == "sendMessage"
            kind = "private" if body["chat_id"] > 0 else "group"
            about = {"message_id": body.get("message_id") or self._message, "date": 0, "text": body["text"]}
            body |= about
            result = {**about, "chat": {"id": body["chat_id"], "type": kind}}
        self.calls.append((method, body))
        self._changed.notify_all()
        return {"ok": True, "result": result}

    def _polled(self, body: dict[str, Any]) -> dict[str, Any]:
        self.polls += 1
        for number in [each for each in self._updates if each < body.get("offset", 0)]:
            del self._updates[number]
        self._changed.notify_all()
        self._changed.wait_for(lambda: self._updates or self._is_closed, body.get("timeout", 0))
        return {"ok": True, "result": [self._updates[each] for each in sorted(self._updates)][: body["limit"]]}


def _entities(text: str) -> list[dict[str, Any]]:
    found, at = list[dict[str, Any]](), 0
    for word in text.split(" "):
        size = len(word.encode("utf-16-le")) // 2
        if word.startswith(("@", "/")) and len(word) > 1:
            kind = "mention" if word.startswith("@") else "bot_command"
            found.append({"type": kind, "offset": at, "length": size})
        at += size + 1
    return found


def _answering(server: BotServer) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing: the calls are kept."""

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            whose, _, method = self.path.removeprefix("/bot").partition("/")
            try:
                if whose != server.token:
                    return self._send(401, {"ok": False, "error_code": 401, "description": "Unauthorized"})
                answer = server.take(method, json.loads(raw or b"{}"))
                if isinstance(answer, dict):
                    return self._send(200, answer)
                if answer.break_:
                    self.close_connection = True
                    self.connection.close()
                    return None
                said = {"ok": False, "error_code": answer.code, "description": answer.description}
                more = {"parameters": answer.parameters} if answer.parameters else {}
                return self._send(answer.code, said | more)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def _send(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Answering
