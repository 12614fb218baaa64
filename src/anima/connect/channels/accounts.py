"""Which channels a home is on, and being present there.

Promise: an account stands in the user's own configuration, never in a home; a channel is attended by one process at a time,
until it is switched off. Not here: what a channel is (the package), what is said on one (presence).
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from anima.connect.channels import ChannelDown
from anima.connect.spool import read_json, write_json
from anima.errors import BadArguments, Damaged, HomeBusy

if TYPE_CHECKING:
    from anima.agent.chats import Chats
    from anima.home import Home

KINDS = ("telegram",)
LOOK = 2.0  # seconds between two looks whether it is still wanted


class Account(NamedTuple):
    """A home's account on a channel. `stopped` says why it is not used, though it is on."""

    token: str = ""
    url: str = ""
    on: bool = False
    stopped: str = ""


class Accounts:
    """The accounts of one home, in the user's own configuration (0600), beside its tokens and never in it."""

    def __init__(self, home: Home) -> None:
        self._file = os.fspath(home.credentials / "channels.json")

    def get(self, kind: str) -> Account:
        """Raises BadArguments for a channel that there is not."""
        if kind not in KINDS:
            raise BadArguments(f"there is no channel {kind!r}; there is {', '.join(KINDS)}")
        held = (read_json(self._file) or {}).get(kind, {})
        return Account(**{name: held[name] for name in Account._fields if name in held})

    def put(self, kind: str, account: Account) -> None:
        """Raises Damaged."""
        try:
            write_json(self._file, {**(read_json(self._file) or {}), kind: account._asdict()})
        except OSError as error:
            raise Damaged(f"channels.json cannot be written ({os.strerror(error.errno or 0)})") from None


def attend(home: Home, chats: Chats, kind: str, stop: threading.Event) -> None:
    """Is present on a channel until `stop` is set or the owner switches it off. Blocks; one process at a time does so, and
    any other returns. Raises ChannelDown, which is written down where it is final, and MissingExtra."""
    from anima.agent import need_chat
    from anima.connect.channels.presence import Presence
    from anima.connect.channels.telegram import Telegram

    need_chat()
    accounts = Accounts(home)
    account = accounts.get(kind)
    with suppress(HomeBusy), home.site.store.lease("channels", patience=0):
        running = chats.soon(Presence(home, Telegram(account.token, url=account.url), chats).run())
        try:
            while not running.done() and accounts.get(kind) == account and not stop.wait(LOOK):
                pass
            if running.done():
                running.result()
        except ChannelDown as error:
            accounts.put(kind, account._replace(stopped=str(error)))
            raise
        finally:
            running.cancel()
