"""What tests of channels share: a home with its presence on a channel, and a model that answers as it is told."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anima import Home
from anima.agent.chats import Chats
from anima.agent.models import Models
from anima.connect.channels.presence import Presence
from anima.connect.channels.telegram import Telegram
from anima.testing import Clock
from anima.testing.models import ModelServer
from anima.testing.telegram import BotServer

OWNER, STRANGER, GROUP = 7, 66, -4200


def a_home(folder: Path, **settings: Any) -> Home:
    given = {"owner": [f"telegram:{OWNER}"], **settings}
    return Home.create(folder / "home", name="Aria", clock=Clock(), settings=given)


class Bot:
    """A home on Telegram: what its people write, and what it sends. Waiting has an end."""

    def __init__(self, home: Home, server: BotServer) -> None:
        self.home, self.server = home, server
        self.pauses = list[float]()
        self.chats: Chats | None = None
        self.running: Future[None] | None = None

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def start(self) -> None:
        self.chats = Chats(self.home)
        channel = Telegram(self.server.token, url=self.server.url, pause=self.pause)
        self.running = self.chats.soon(Presence(self.home, channel, self.chats).run())

    def stop(self) -> None:
        """As a kill would: nothing more is done about anything."""
        if self.chats is not None and self.running is not None:
            self.running.cancel()
            self.chats.close()
            self.chats = None

    def asks(self, text: str, *, sender: int = OWNER, group: int = 0, **more: Any) -> str:
        """The answer to a message."""
        chat = group or sender
        before = len(self.server.sent(chat))
        self.server.says(text, sender=sender, group=group, **more)
        return self.server.text_to(chat, after=before)

    def card(self, chat: int = OWNER) -> dict[str, Any]:
        """The last message with buttons."""
        self.server.wait(lambda: any("reply_markup" in each for each in self.server.sent(chat)))
        return [each for each in self.server.sent(chat) if "reply_markup" in each][-1]

    def press(self, card: dict[str, Any], label: str, *, sender: int = OWNER, chat: int = 0) -> str:
        """Presses a button; the word that comes back."""
        row = card["reply_markup"]["inline_keyboard"][0]
        data = next(each["callback_data"] for each in row if each["text"] == label)
        return self.forge(
            data, sender=sender, chat=chat or card["chat_id"], message=card["message_id"], text=card["text"]
        )

    def forge(self, data: str, *, sender: int, chat: int, message: int = 1, text: str = "") -> str:
        kind = "private" if chat > 0 else "group"
        under = {"message_id": message, "date": 0, "text": text, "chat": {"id": chat, "type": kind}}
        before = len(self.words())
        self.server.presses(data, sender=sender, message=under)
        self.server.wait(lambda: len(self.words()) > before)
        return self.words()[-1]

    def words(self) -> list[str]:
        return [body["text"] for method, body in list(self.server.calls) if method == "answerCallbackQuery"]

    def texts(self, chat: int) -> str:
        return "\n".join(each["text"] for each in self.server.sent(chat))


@contextmanager
def on_telegram(home: Home, *, model: ModelServer | None = None) -> Iterator[Bot]:
    if model is not None:
        Models.of(home).use("openai-chat:loopback", url=model.url, key=model.key)
    with BotServer() as server:
        bot = Bot(home, server)
        bot.start()
        try:
            yield bot
        finally:
            bot.stop()
