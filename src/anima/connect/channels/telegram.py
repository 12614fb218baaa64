"""Telegram behind the seam, over the Bot API: long polling, and five more calls.

Promise: the token stands in addresses alone, and no log, error or proxy hears of them. People are known by their numbers.
What was forwarded, made by another bot or quoted from elsewhere is no word of the sender's. Pictures, voices and files are
named and not fetched; links are not looked at by Telegram. Where it says "too many requests", it is left alone for as long.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote

from anima.agent.models import is_local
from anima.connect.channels import Button, ChannelDown, Heard, Venue
from anima.errors import BadArguments, MissingExtra, printable

URL = "https://api.telegram.org"
MOST = 4_096  # UTF-16 units of one message
BODY = 16 << 20  # bytes of an answer
TRIES = 5  # of one call that has to wait
QUOTED = 1_000  # characters of what is answered to
KINDS = ("message", "edited_message", "callback_query", "my_chat_member")
_FILES = "voice audio video_note video animation document photo sticker contact location venue poll story paid_media"


class Telegram:
    """A bot on Telegram. `pause` waits for some seconds."""

    name = "telegram"

    def __init__(
        self, token: str, *, url: str = "", pause: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        if find_spec("httpx2") is None:
            raise MissingExtra("telegram", "Telegram")
        number, colon, secret = token.partition(":")
        if not (number.isdigit() and colon and secret and token.isascii() and quote(token, safe=":_-") == token):
            raise BadArguments("this is no token of a bot: it is a number, a colon and letters, as BotFather shows it")
        if url and not (url.startswith("https://") or is_local(url)):
            raise BadArguments(f"{url}: the token would travel there for anybody to read", hint="use an https address")
        import httpx2

        self._http, self._pause = httpx2.AsyncHTTPTransport(retries=1), pause
        self._where, self._id, self._called = f"{url.rstrip('/') or URL}/bot{token}", int(number), ""

    async def begin(self) -> str:
        self._called = str((await self._call("getMe")).get("username", ""))
        return f"@{self._called}"

    async def listen(self, after: int, *, wait: float) -> Sequence[Heard]:
        asked = {"timeout": int(wait), "limit": 100, "allowed_updates": KINDS}
        found = await self._call("getUpdates", seconds=wait + 15, **asked, **({"offset": after + 1} if after else {}))
        heard = list[Heard]()
        for each in found:
            if isinstance(each, dict) and type(number := each.get("update_id")) is int:
                try:
                    heard.append(self._understood(number, each))
                except (KeyError, TypeError, ValueError, AttributeError):  # what newer servers may send
                    heard.append(Heard(number=number, kind="nothing", venue=Venue("")))
        return heard

    def fits(self, text: str) -> bool:
        return _units(text) <= MOST

    async def send(self, venue: Venue, text: str, *, buttons: Sequence[Button] = (), to: str = "") -> str:
        pieces, sent = list(pieces_of(text)), ""
        for number, piece in enumerate(pieces):
            more: dict[str, Any] = {}
            if to and not number:
                more["reply_parameters"] = {"message_id": int(to), "allow_sending_without_reply": True}
            if buttons and number == len(pieces) - 1:
                row = [{"text": each.label, "callback_data": each.data} for each in buttons]
                more["reply_markup"] = {"inline_keyboard": [row]}
            if venue.thread:
                more["message_thread_id"] = int(venue.thread)
            made = await self._call("sendMessage", chat_id=int(venue.chat), text=piece, **_PLAIN, **more)
            sent = str(made.get("message_id", ""))
        return sent

    async def edit(self, venue: Venue, message: str, text: str) -> None:
        text = next(pieces_of(text), "")
        await self._call("editMessageText", chat_id=int(venue.chat), message_id=int(message), text=text, **_PLAIN)

    async def answer(self, pressed: Heard, text: str) -> None:
        await self._call("answerCallbackQuery", callback_query_id=pressed.press, text=text[:200])

    def direct(self, person: str) -> Venue:
        return Venue(person, is_direct=True)

    async def close(self) -> None:
        await self._http.aclose()

    async def _call(self, method: str, *, seconds: float = 30.0, **given: Any) -> Any:
        for _ in range(TRIES):
            said = await self._answer(method, given, seconds)
            about = said.get("parameters") or {}
            if said.get("ok"):
                return said["result"]
            if said.get("error_code") != 429:
                raise _down(said.get("error_code"), str(said.get("description", "")), about)
            await self._pause(float(about.get("retry_after") or 1))
        raise ChannelDown("Telegram says: too many requests")

    async def _answer(self, method: str, given: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """What the server says, whatever its status. By the transport alone: a client would log the address."""
        import httpx2

        limits = {"connect": 10.0, "read": seconds, "write": 30.0, "pool": 30.0}
        request = httpx2.Request("POST", f"{self._where}/{method}", json=given, extensions={"timeout": limits})
        try:
            response, body = await self._http.handle_async_request(request), b""
            try:
                async for piece in response.aiter_raw():
                    if len(body := body + piece) > BODY:
                        break
            finally:
                await response.aclose()
            said = json.loads(body)
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError, RecursionError) as error:
            raise ChannelDown(f"Telegram cannot be reached, or not be understood ({type(error).__name__})") from None
        return said if isinstance(said, dict) else {}

    def _understood(self, number: int, update: Mapping[str, Any]) -> Heard:
        if (pressed := update.get("callback_query")) and isinstance(pressed.get("message"), dict):
            under, who = pressed["message"], pressed["from"]
            about = {"message": str(under["message_id"]), "text": str(under.get("text") or ""), "press": pressed["id"]}
            about |= {"sender": str(who["id"]), "data": str(pressed.get("data", ""))}
            return Heard(number=number, kind="pressed", venue=_venue(under, who), **about)
        if member := update.get("my_chat_member"):
            is_out = (member.get("new_chat_member") or {}).get("status") in ("left", "kicked")
            return Heard(number=number, kind="gone" if is_out else "nothing", venue=_venue(member, member["from"]))
        message: dict[str, Any] = update.get("message") or update["edited_message"]
        edited = "" if "message" in update else f".{message['edit_date']}"
        sender = message.get("from") or {}
        posted_as = message.get("sender_chat") or {}  # a group or channel in a person's place
        venue, text = _venue(message, sender), str(message.get("text") or message.get("caption") or "")
        files = [each.replace("_", " ") for each in _FILES.split() if message.get(each)]
        if moved := message.get("migrate_to_chat_id"):
            return Heard(number=number, kind="moved", venue=venue, data=str(moved))
        if (sender.get("is_bot") and not posted_as) or not (text or files):
            return Heard(number=number, kind="nothing", venue=venue)
        is_carried, (quotation, quoted) = self._is_carried(message), self._answered(message, venue)
        command, meant = ("", venue.is_direct) if is_carried else self._meant(message, text, venue)
        outside = ("made by a bot" if message.get("via_bot") else "forwarded", text if is_carried else "")
        mine = "" if is_carried else "".join(text.split(maxsplit=1)[1:]) if command else _marked(message, text)
        named = f"`[{' and '.join(files)} came along, which nobody looked at]`" if files else ""
        return Heard(
            number=number,
            kind="edited" if edited else "said",
            venue=venue,
            sender=f"chat{posted_as['id']}" if posted_as else str(sender["id"]),
            name=printable(str(posted_as.get("title") or sender.get("first_name") or ""), 40),
            message=f"{message['message_id']}{edited}",
            text="\n".join(filter(None, (quotation, mine, named))),
            outside=tuple(each for each in (outside, ("quoted", quoted)) if each[1]),
            command=command,
            is_meant=meant,
        )

    def _meant(self, message: Mapping[str, Any], text: str, venue: Venue) -> tuple[str, bool]:
        """The command that is for us, if it is one; and whether we are meant."""
        ours, meant, command = f"@{self._called}".casefold(), venue.is_direct, ""
        units = text.encode("utf-16-le", "surrogatepass")  # by which Telegram counts
        for each in message.get("entities") or message.get("caption_entities") or ():
            start, length = int(each.get("offset", 0)), int(each.get("length", 0))
            said = units[2 * start : 2 * (start + length)].decode("utf-16-le", "replace").casefold()
            match each.get("type"):
                case "mention":
                    meant |= said == ours
                case "text_mention":
                    meant |= (each.get("user") or {}).get("id") == self._id
                case "bot_command" if each.get("offset") == 0:
                    word, at, whom = said.partition("@")
                    if at and at + whom != ours:
                        return "", False
                    command, meant = word[1:], meant or bool(at)
        answered = message.get("reply_to_message") or {}
        meant |= (answered.get("from") or {}).get("id") == self._id
        return command if meant else "", meant

    def _answered(self, message: Mapping[str, Any], venue: Venue) -> tuple[str, str]:
        """What a message answers to: a member's words as a quotation, or words from outside; neither where we know them."""
        answered = message.get("reply_to_message") or {}
        said = str((message.get("quote") or {}).get("text") or answered.get("text") or answered.get("caption") or "")
        whose = answered.get("from") or {}
        is_carried = message.get("external_reply") or self._is_carried(answered)
        if is_carried or (venue.is_direct and whose.get("id") not in (self._id, message["from"]["id"])):
            return "", said[:QUOTED]
        if venue.is_direct or not said or whose.get("id") == self._id:
            return "", ""
        name = printable(str(whose.get("first_name") or ""), 40)
        return "\n".join(f"> {line}" for line in f"{name}: {said[:QUOTED]}".splitlines()), ""

    def _is_carried(self, message: Mapping[str, Any]) -> bool:
        is_bots = (whose := message.get("from") or {}).get("is_bot") and whose.get("id") != self._id
        is_anonymous = is_bots and message.get("sender_chat")  # a person whom Telegram does not name
        is_forwarded = message.get("forward_origin") or message.get("forward_date")
        return bool(is_forwarded or message.get("via_bot") or (is_bots and not is_anonymous))


# Or whoever owns an address would hear of what stands in it.
_PLAIN: dict[str, Any] = {"link_preview_options": {"is_disabled": True}}
_COPIED = ("blockquote", "expandable_blockquote", "pre", "code")


def _venue(message: Mapping[str, Any], sender: Mapping[str, Any]) -> Venue:
    chat = message["chat"]
    is_direct = chat.get("type") == "private" and chat["id"] == sender.get("id")
    thread = str(message.get("message_thread_id", "")) if message.get("is_topic_message") else ""
    return Venue(str(chat["id"]), thread, is_direct)


def _units(text: str) -> int:
    return len(text) + sum(each > "\uffff" for each in text)


def _marked(message: Mapping[str, Any], text: str) -> str:
    """A text with `> ` before each line that holds what Telegram shows as quoted or as code: a copy, which nobody typed."""
    entities = message.get("entities") or message.get("caption_entities") or ()
    copied = [(each["offset"], each["offset"] + each["length"]) for each in entities if each.get("type") in _COPIED]
    at, lines, was_copied = 0, list[str](), False
    for line in text.splitlines(keepends=True) if copied else ():
        end = at + _units(line)
        is_copied = any(start < end and at < stop for start, stop in copied)
        lines += [""] if was_copied and not is_copied else []  # or Markdown counts it to the quotation
        lines.append(("> " if is_copied else "") + line.splitlines()[0])
        at, was_copied = end, is_copied
    return "\n".join(lines) if copied else text


def pieces_of(text: str) -> Iterator[str]:
    """A text in messages: cut at the end of a line or a word where there is one, and never inside a character."""
    rest = text.encode("utf-8", "replace").decode().strip()
    while _units(rest) > MOST:
        room = len(rest[:MOST].encode("utf-16-le")[: 2 * MOST].decode("utf-16-le", "ignore"))
        cut = next((at for sign in ("\n", " ") if (at := rest.rfind(sign, room // 2, room)) > 0), room)
        yield rest[:cut].rstrip()
        rest = rest[cut:].lstrip()
    if rest:
        yield rest


def _down(code: object, said: str, about: Mapping[str, Any]) -> ChannelDown:
    """An error of Telegram's in words of ours; it holds neither token nor text."""
    if moved := about.get("migrate_to_chat_id"):
        return ChannelDown("this group has another number now", moved=str(moved))
    if code in (401, 404):
        return ChannelDown("Telegram does not know this token", final=True, hint="anima channel telegram --token")
    if code == 409:
        hint = "end it, or have BotFather revoke the token; a webhook goes with deleteWebhook"
        return ChannelDown("another program listens with this token, or a webhook is set", hint=hint)
    return ChannelDown(f"Telegram refused it ({printable(said or str(code), 80)})", gone=code in (400, 403))
