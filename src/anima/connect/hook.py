"""`anima hook HOST EVENT`: what a host's hook runs. It reads the host's JSON, keeps the report, and answers the host.

Promise: exit 0 whatever is wrong, and then an empty answer; never more than 9,000 bytes; nothing heavy is imported for a
report that only is kept. The home and the configuration are those that the owner named when they connected the host:
neither the environment nor a project's files say others. What takes long is left to a process of its own.
Not here: what reports come to (settle), what a model is told at the start (waking).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from anima.connect import EVENTS, MOST, Report, Spool, envelope, fitting, is_agents_shell, parsed, report_of, takes

MOST_IN = 16 << 20  # bytes of a host's report; what is longer is none
SECONDS = 20
_SETTLED = ("start", "cut", "end")  # after these, what waits is worked through


class Late(Exception):
    """It took too long."""


def main(arguments: Sequence[str]) -> int:
    """The program: says what the host is to be told, or nothing."""
    try:
        signal.signal(signal.SIGALRM, _late)
        signal.alarm(SECONDS)
        said = answer(arguments, sys.stdin.buffer.read(MOST_IN + 1), nested=is_agents_shell(*arguments[:1]))
        signal.alarm(0)
        sys.stdout.buffer.write(said.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    except Exception:  # whatever it is, it must not cost the person their turn
        pass
    return 0


def _late(number: int, frame: FrameType | None) -> None:
    raise Late


def answer(
    arguments: Sequence[str], raw: bytes, *, nested: bool = False, apart: Callable[[str, str], None] | None = None
) -> str:
    """The answer to one event, whose JSON is `raw`; the report is kept. A host that is `nested` was started by an agent, and
    nobody types there. What takes long is begun by `apart`, with the home and the configuration. Raises whatever is wrong."""
    host, name, home, config = parsed(arguments)
    if len(raw) > MOST_IN or name not in EVENTS[host]:
        return ""
    report = report_of(host, name, json.loads(raw))
    spool = Spool(config, home, host)
    connection = spool.connection
    if report is None or connection is None or connection.get("identity") != str(Path(home).stat().st_ino):
        return ""  # another folder took its place, or the owner took the host out
    if report.scope:  # somebody else may listen: told what they may hear, and nothing is kept
        return envelope(host, name, _told(spool, home, config, report) if report.event in ("start", "helper") else "")
    report = report._replace(machine=report.machine or nested)
    spool.add(report)
    if report.event == "cut":
        spool.mark_cut(report.id)
    if report.event in _SETTLED:
        (apart or settle_apart)(home, config)
    text = _told(spool, home, config, report) if takes(host, report.event) else ""
    return envelope(host, name, text)


def _told(spool: Spool, home: str, config: str, report: Report) -> str:
    """What the model is told at this event."""
    room = MOST - 200
    was_cut = spool.was_cut(report.id)
    if report.event in ("start", "helper") or was_cut:  # some hosts do not start anew after a cut
        from anima.connect.settle import waking

        return waking(home, config, report, again=was_cut, room=room)
    if report.machine or not report.text.strip():
        return ""
    from anima.connect.recall import recalled, told

    index = str((spool.connection or {}).get("index", ""))
    return fitting(told(recalled(home, index, report.text)), room)


def settle_apart(home: str, config: str) -> None:
    """Has what waits worked through, in a process that outlives this one and its host."""
    command = [sys.executable, "-P", "-m", "anima.connect.settle", "--home", home, "--config", config]
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    os.posix_spawn(sys.executable, command, os.environ, file_actions=null, setsid=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
