"""How many modules does a verb touch?

    python benchmarks/paths.py [--list] [--json]

Every verb is carried out on a real home of its own, in a temporary folder, while a profile hook notes in which modules
of ours a function is called. Before that each was carried out once elsewhere, so that nothing is imported meanwhile:
module bodies are left out. What is counted is what somebody reads who wants to follow one call from its beginning to
its end.

prompt          `home.prompt(scope="main")`, the second one of this home
search          a question of the owner's, in a home with an index that the newest line has still to come into
owner's write   one fact remembered
agent's write   `memory_write` in a main session that is open
undo            the newest change taken back
forget          a phrase that stands in memory and in a log; no purge
restore         a snapshot put in the place of a home that was written to since
dream           a night that promotes a line

Beside each is the most it should be. `--list` names the modules.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import anima
from anima import Home, Session

PACKAGE = str(Path(anima.__file__).parent) + "/"
FACT = "Ana is allergic to peanuts"


@dataclass
class Scene:
    """A home with some days behind it, and what a verb may need."""

    place: Path
    clock: Days
    home: Home
    session: Session
    archive: str = ""

    def close(self) -> None:
        self.session.close()
        self.home.close()


# -- what is asked of a home, in one place -----------------------------------------------------------------------------


def prompt(scene: Scene) -> object:
    return scene.home.prompt(scope="main")


def search(scene: Scene) -> object:
    return scene.home.search("where is the spare key", scope="main")


def owners_write(scene: Scene) -> object:
    return scene.home.remember("The boat is called Sandpiper", section="Projects")


def agents_write(scene: Scene) -> object:
    return scene.session.call("memory_write", {"target": "memory", "content": "Bo likes tea", "section": "People"})


def undo(scene: Scene) -> object:
    return scene.home.undo()


def forget(scene: Scene) -> object:
    return scene.home.forget(text="the spare key is with Bo")


def dream(scene: Scene) -> object:
    return scene.home.dream()


def restore(scene: Scene) -> object:
    return anima.restore(scene.archive, scene.place / "home", clock=scene.clock, env=env_of(scene.place))


def snapshot(scene: Scene) -> str:
    return str(scene.home.snapshots.take().path)


VERBS: dict[str, tuple[Callable[[Scene], object], int]] = {
    "prompt": (prompt, 13),
    "search": (search, 16),
    "owner's write": (owners_write, 22),
    "agent's write": (agents_write, 24),
    "undo": (undo, 22),
    "forget": (forget, 26),
    "restore": (restore, 20),
    "dream": (dream, 36),
}


# -- the home ----------------------------------------------------------------------------------------------------------


class Days:
    """A clock that is moved by hand. Our own one would count as a module that is touched."""

    def __init__(self) -> None:
        self.now = datetime(2026, 4, 20, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def env_of(place: Path) -> dict[str, str]:
    return {"ANIMA_CONFIG": str(place / "config")}


def made(place: Path) -> Scene:
    """A home that was noted in, asked, prompted from and written to, so that each verb has something to do."""
    clock = Days()
    home = Home.create(place / "home", name="Aria", clock=clock, env=env_of(place))
    home.note(FACT)
    home.note("I heard that the spare key is with Bo")
    for _ in range(3):
        clock.now += timedelta(days=1)
        with home.session(scope="main", channel="cli") as session:
            session.call("memory_search", {"query": "what is Ana allergic to"})
    prompt(scene := Scene(place, clock, home, home.session(scope="main", channel="cli")))
    scene.archive = snapshot(scene)
    home.remember("the spare key is with Bo", section="People")
    return scene


# -- counting ----------------------------------------------------------------------------------------------------------


def touched(act: Callable[[], object]) -> list[str]:
    """The modules in which a function was called meanwhile, in this thread and in those it started."""
    places: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_name != "<module>":
            places.add(code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(place.removeprefix(PACKAGE).removesuffix(".py").removesuffix("/__init__") for place in places)


def walked(place: Path, verb: Callable[[Scene], object]) -> list[str]:
    """The modules that a verb touches in a home of its own."""
    scene = made(place)
    try:
        return touched(lambda: verb(scene))
    finally:
        scene.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="also name the modules")
    parser.add_argument("--json", action="store_true", help="print one JSON value")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="anima-paths-") as folder:
        for name, (verb, _) in VERBS.items():
            walked(Path(folder, "before", name), verb)
        found = {name: walked(Path(folder, name), verb) for name, (verb, _) in VERBS.items()}
    if asked.json:
        rows = {name: {"modules": len(seen), "most": VERBS[name][1], "names": seen} for name, seen in found.items()}
        print(json.dumps(rows, indent=1))
        return
    for name, seen in found.items():
        most = VERBS[name][1]
        print(f"{name:16} {len(seen):3} modules   at most {most:3}   {'over' if len(seen) > most else ''}".rstrip())
        if asked.list:
            print(f"    {' '.join(seen)}")


if __name__ == "__main__":
    main()
