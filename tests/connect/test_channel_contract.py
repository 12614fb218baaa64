"""The contract of a channel, passed by Telegram over a Bot API server on loopback, and by the one in memory."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from anima.connect.channels import Button, Venue
from anima.connect.channels.telegram import Telegram
from anima.testing.channels import ChannelContract, MemoryChannel, Shown, Town
from anima.testing.telegram import CUT, BotServer


class TestMemoryChannel(ChannelContract):
    @pytest.fixture
    def town(self) -> Town:
        return MemoryChannel()


class People:
    """The people of Telegram, by a server on loopback."""

    def __init__(self, server: BotServer) -> None:
        self.server = server

    def open(self) -> Telegram:
        return Telegram(self.server.token, url=self.server.url)

    def says(self, text: str, *, sender: str, group: str = "", meant: bool = True) -> None:
        said = f"@{self.server.username} {text}" if group and meant else text
        self.server.says(said, sender=int(sender), group=int(group or 0))

    def forwards(self, text: str, *, sender: str) -> None:
        self.server.says(text, sender=int(sender), forward_origin={"type": "hidden_user", "date": 0})

    def presses(self, data: str, *, sender: str, under: Shown) -> None:
        chat = {"id": int(under.venue.chat), "type": "private"}
        message = {"message_id": int(under.id), "date": 0, "chat": chat, "text": under.text}
        self.server.presses(data, sender=int(sender), message=message)

    def shown(self) -> list[Shown]:
        found = dict[int, Shown]()
        for method, body in self.server.calls:
            if method in ("sendMessage", "editMessageText"):
                rows = body.get("reply_markup", {}).get("inline_keyboard", [[]])
                buttons = [Button(each["text"], each["callback_data"]) for each in rows[0]]
                chat = str(body["chat_id"])
                venue = Venue(chat, is_direct=not chat.startswith("-"))
                found[body["message_id"]] = Shown(venue, body["text"], buttons, str(body["message_id"]))
        return list(found.values())

    def words(self) -> list[str]:
        return [body["text"] for method, body in self.server.calls if method == "answerCallbackQuery"]

    def cut(self) -> None:
        self.server.fails("sendMessage", CUT)


class TestTelegram(ChannelContract):
    @pytest.fixture
    def town(self) -> Iterator[Town]:
        with BotServer() as server:
            yield People(server)


def test_the_program_on_the_page_says_what_the_page_shows() -> None:
    page = (Path(__file__).parents[2] / "docs/channels.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=180)
    assert f"```text\n{done.stdout}```" in page
