"""One lock a home, across processes and threads; and the one flock there is.

Promise: at most one holder; the lock file is never deleted; a holder that dies lets go by itself; whoever waits too
long is told who holds it. Re-entrant in one thread. A lock file that somebody else deleted, or that came along through
a fork, is opened anew, so that nobody believes to hold what no other process can see. Not here: what it protects.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from anima.errors import Damaged, HomeBusy, HomeError, Refused

PATIENCE = 30.0


def flock(fd: int, *, wait: bool = False) -> bool:
    """Takes the lock of an open file until it is closed; False where somebody else has it. Raises OSError."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(fd: int, close: Callable[[], None]) -> None:
    """Lets go of the lock; where the disk does not take it back, `close` closes the file, which lets go as well."""
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)
    except OSError:
        with suppress(HomeError):
            close()


def patiently(take: Callable[[], bool], patience: float, holder: Callable[[], str]) -> None:
    """Tries until it succeeds. Raises HomeBusy with the holder's name after `patience` seconds."""
    give_up, pause = time.monotonic() + patience, 0.0005
    while not take():
        if time.monotonic() >= give_up:
            raise HomeBusy(holder(), seconds=patience)
        time.sleep(pause)
        pause = min(pause * 2, 0.02)


def restored_meanwhile() -> Refused:
    """Who had a home open that was restored knows another one."""
    said = "this home was restored from a snapshot while it was open here; nothing was changed"
    return Refused(said, rule="restored", hint="open it again; a server is started again")


class Handle:
    """What holds one open file, until it is closed."""

    _fd = -1

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class HomeLock(Handle):
    """A flock on one file, with a mutex for the threads of this process. Lives as long as its store."""

    def __init__(
        self,
        opened: Callable[[], int],
        standing: Callable[[], os.stat_result | None],
        *,
        entered: Callable[[], None] = lambda: None,
        counts: bool = False,
    ) -> None:
        """`opened` gives a descriptor of the lock file, `standing` the stat of what stands at its place now. `entered` is
        called whenever the lock was taken; what it raises, whoever wanted the lock gets. With `counts` holders are."""
        self._entered, self._counts = entered, counts
        self._opened, self._standing, self._fd, self._process = opened, standing, -1, 0
        self.mutex, self._depth = threading.RLock(), 0
        self.token = 0  # where holders are counted: greater than that of every earlier one

    @contextmanager
    def hold(self, patience: float = PATIENCE) -> Iterator[None]:
        """The home is ours inside. Raises HomeBusy with the holder's name after `patience` seconds."""
        if not self.mutex.acquire(timeout=patience):
            raise HomeBusy("another thread of this process", seconds=patience)
        try:
            if self._depth == 0:
                patiently(self._locked, patience, lambda: _signed(self._fd))
                self._sign()
                try:
                    self._entered()
                except BaseException:
                    unlock(self._fd, self.close)
                    raise
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    unlock(self._fd, self.close)
        finally:
            self.mutex.release()

    def _locked(self) -> bool:
        if self._process != os.getpid():  # a descriptor from before a fork is one lock for both processes
            self.close()
        if self._fd < 0:
            self._fd, self._process = self._opened(), os.getpid()
        try:
            if not flock(self._fd):
                return False
        except OSError as error:
            said = f"the home cannot be locked ({os.strerror(error.errno or 0)}); nothing was changed"
            raise Damaged(said, hint="is it on a network disk that has no locks?") from None
        standing = self._standing()
        if standing is None or not os.path.samestat(standing, os.fstat(self._fd)):
            self.close()
            return False
        return True

    def holder(self) -> str | None:
        """Who holds the lock just now; None when nobody does. For a lock file that is there; waits for nobody."""
        if self._depth:
            return None
        try:
            fd = self._opened()
        except Damaged:
            return None
        try:
            return None if flock(fd) else _signed(fd)
        except OSError:
            return _signed(fd)
        finally:
            os.close(fd)

    def _sign(self) -> None:
        """Writes who holds it, for whoever waits. A full disk does not stop us: the lock holds."""
        said: dict[str, object] = {"pid": os.getpid(), "command": _command(sys.argv)}
        if self._counts:
            said["token"] = self.token = int(_read(self._fd).get("token", 0)) + 1
        name = json.dumps(said).encode()
        try:
            os.pwrite(self._fd, name, 0)
            os.ftruncate(self._fd, len(name))
        except OSError:
            pass


def _command(argv: Sequence[str]) -> str:
    """The name of a program, and anima's own verb. What else a command line holds may be what is to be remembered, or
    forgotten, and the file stays when we are gone."""
    place, _, name = (argv[0] if argv else "").rpartition("/")
    if name != "anima" and not (name == "__main__.py" and place.endswith("/anima")):
        return name[:80]
    verb = argv[1] if len(argv) > 1 else ""
    return f"anima {verb}" if re.fullmatch(r"[a-z][a-z-]{1,19}", verb) else "anima"


def _signed(fd: int) -> str:
    return f"process {found['pid']} ({found['command'][:80]})" if (found := _read(fd)) else "another process"


def _read(fd: int) -> dict[str, Any]:
    """What the last holder wrote; nothing where that cannot be read."""
    try:
        found = json.loads(os.pread(fd, 4096, 0))
        return {"pid": int(found["pid"]), "command": str(found["command"]), "token": int(found.get("token", 0))}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
