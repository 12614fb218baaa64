"""What a listener may not see is told at no door: the attacks C2, H1, H2 and the first of the design's, by each way in.

Two homes differ only in what the caller may not see, and are asked the same through one door. Whatever one home answers, the
other must answer too. Not here: random sequences (tests/sessions/test_noninterference.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from attacking import ORDER, need
from doors import DOORS, Caller, Door, opened

from anima import DocPath, Home, Scope
from anima.testing import Clock

PIN = "7319"
LINE = "- the safe stands behind the blue door"
SHARED = "## House <!-- share: subagent, group, cron -->\n\n- the roof is red\n\n"
TEAM = "# Boat\n\n## Team <!-- share: group, subagent, cron -->\n\n- tea\n\n"
RULES = "# Rules\n\n- be kind\n\n## Outside\n\n- be brief\n"
SELF = "# Identity\n\n- **Name:** Aria\n\n## More\n\n- kind\n"
INSIDE = f"## Inside <!-- private -->\n\n- the PIN is {PIN}\n- **Vibe:** sad\n" + "- one more\n" * 40 + "\n"

# What stands in one home and in the other; nothing stands where no text is given.
Hidden = dict[str, tuple[str | bytes | None, str | bytes | None]]
TO_OTHERS: Hidden = {
    "MEMORY.md": (
        f"# Memory\n\n- the PIN of the door is {PIN}\n{LINE}\n\n{SHARED}## Safe\n\n- the PIN of the safe is {PIN}\n",
        "# Memory\n\n## Debts\n\n" + "- one more\n" * 9 + f"\n{SHARED}",
    ),
    "AGENTS.md": (RULES.replace("## Outside", f"{INSIDE}## Outside"), RULES),
    "IDENTITY.md": (SELF.replace("## More", f"{INSIDE}## More"), SELF),
    "memory/topics/boat.md": (f"{TEAM}> # X\n\nThe zebra safe opens with {PIN}\n", f"{TEAM}> # X\n\nAll is said\n"),
    "memory/topics/car.md": (f"{TEAM}- # Item\n\nThe zebra safe opens with {PIN}\n", f"{TEAM}- # Item\n\nno\n"),
    "memory/topics/divorce.md": (b"\xff\xfe\x00secret", None),
    "users/ana/MEMORY.md": (f"# Memory\n\n{LINE}\n", "# Memory\n"),
    "plan.md": (b"\xff\xfe\x00secret", None),
    "folder.md/within.md": (LINE, None),
}
TO_THE_HEARTBEAT: Hidden = {
    "MEMORY.md": (
        f"# Memory\n\n- tea\n\n## Mine <!-- private -->\n\n{LINE}\n\n ## Indented\n\nThe zebra safe opens with {PIN}\n",
        "# Memory\n\n- tea\n\n",
    ),
    "memory/topics/boat.md": (
        f"# Boat\n\n- tea\nThe zebra safe opens with {PIN} <!--- private --->\n",
        "# Boat\n\n- tea\n",
    ),
    "AGENTS.md": TO_OTHERS["AGENTS.md"],
    "IDENTITY.md": TO_OTHERS["IDENTITY.md"],
}
TO_A_TIMER = {
    path: texts for path, texts in TO_OTHERS.items() if not path.startswith("memory/topics/")
}  # it sees those
CALLERS = {
    "a group": (Caller(Scope.GROUP), TO_OTHERS),
    "a sub-agent": (Caller(Scope.SUBAGENT), TO_OTHERS),
    "a timer": (Caller(Scope.CRON), TO_A_TIMER),
    "the heartbeat": (Caller(Scope.HEARTBEAT), TO_THE_HEARTBEAT),
    "a stranger": (Caller(Scope.MAIN, "telegram:666"), {**TO_OTHERS, "AGENTS.md": (RULES, RULES)}),
}


def writes(target: str, *contents: str, **more: object) -> Callable[[Door], list[str]]:
    return lambda door: [door.told("memory_write", target=target, content=content, **more) for content in contents]


def edits(path: str, *olds: str) -> Callable[[Door], list[str]]:
    def tried(door: Door) -> list[str]:
        asked = [(old, every) for old in olds for every in (False, True)]
        return [
            door.told("memory_write", target=path, old_string=old, new_string="x", replace_all=every)
            for old, every in asked
        ]

    return tried


def asks(tool: str, **given: object) -> Callable[[Door], list[str]]:
    return lambda door: [door.told(tool, **given)]


SANDWICH = f"do\n{LINE}\nanything now"  # an order that is only whole when the line in its middle is not new
ATTACKS: dict[str, Callable[[Door], list[str]]] = {
    "C2 an edit finds a hidden line of memory": edits("MEMORY.md", PIN, f"is {PIN}", LINE, "the PIN", "- "),
    "C2 an edit finds a private line of the rules": edits("AGENTS.md", PIN, "the PIN is", "- one more", "- "),
    "H1 a search finds past a shared section": asks("memory_search", query="which zebra safe opens", limit=20),
    "H1 a search of everything does": asks("memory_search", query="zebra safe", limit=20, corpus="all"),
    "H1 a page is read to its end": lambda door: [door.told("memory_get", path=path) for path in TO_OTHERS],
    "H2 an order around a hidden line": writes("MEMORY.md", SANDWICH, append=False),
    "H2 an order around another's line": writes("users/ana/MEMORY.md", SANDWICH, append=False),
    "H2 the line of a finding": writes("memory", ORDER, f"{ORDER} now"),
    "H2 the line of a finding in a section": writes("memory", ORDER, section="Debts"),
    "H2 a secret in a section that is there": writes("memory", "sk-" + "Ab1" * 16, section="Debts"),
    "H2 the size": writes("memory", "x" * 262_144),
    "H2 a duplicate": writes("memory", LINE, LINE.upper()),
    "H2 what stands at a hidden place": lambda door: [
        door.told("memory_write", target=target, content="x", append=append)
        for target in ("plan.md", "folder.md", "memory/topics/divorce.md")
        for append in (True, False)
    ],
    "H2 who somebody is": asks("who_am_i"),
    "H2 the notes of a search": asks("memory_search", query="what is new"),
    "H2 sizes in a list of documents": lambda door: [door.listed()],
    "H2 a prompt and its manifest": lambda door: [door.prompt()],
    "H2 documents by their addresses": lambda door: [door.read(path) for path in (*TO_OTHERS, "folder.md", "none.md")],
    "H2 names in a tree": lambda door: [
        door.told("memory_tree", path=path, depth=9) for path in ("", "memory/topics", "users", "folder.md", "plan.md")
    ],
    "H2 a wish to forget": lambda door: [
        door.told("memory_forget", text=LINE),
        *(door.told("memory_forget", path="MEMORY.md", line=n) for n in (1, 3, 5, 9, 30)),
    ],
    "H2 history and stories of oneself": lambda door: [
        door.told("memory_history", diff=True),
        door.told("my_stats"),
        door.told("what_do_i_know", section="Debts"),
        door.told("session_logs", action="list_sessions"),
        door.told("memory_checkpoint", note=LINE),
    ],
}


def stands(folder: Path, hidden: Hidden, which: int) -> Path:
    """A home in which one of two texts stands at every hidden place."""
    with Home.create(folder / "aria", name="Aria", clock=Clock(), settings={"index.embedder": "none"}) as home:
        for path, texts in hidden.items():
            place = folder / "aria" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            text = texts[which]
            if isinstance(text, bytes):
                place.write_bytes(text)
            elif text is not None:
                place.write_text(text, encoding="utf-8")
        home.index()
    return folder / "aria"


def seen(folder: Path, caller: Caller) -> dict[str, str]:
    """What a caller may see of the documents that are text, by the one mask that says so."""
    with Home.open(folder, clock=Clock()) as home:
        listener, layout, found = home.site.listener(caller.scope, caller.sender), home.site.layout, {}
        for path, texts in (TO_OTHERS | TO_THE_HEARTBEAT).items():
            if isinstance(texts[0], str):
                place = DocPath.parse(path)
                text = home.read(path).text if home.exists(path) else ""
                found[path] = listener.view(layout, place, text).text.strip()
        return found


# Names that follow from a home's own key, and moments: the process of another has a clock of its own.
NAMES = re.compile(
    r"\b[pu]?[0-9a-f]{12}\b|\b" + "-".join(f"[0-9a-f]{{{n}}}" for n in (8, 4, 4, 4, 12)) + r"\b|\d\d:\d\d(:[\d.]+Z?)?"
)
HEARD: dict[tuple[str, str], list[dict[str, list[str]]]] = {}


def answered(door: str, folder: Path, caller: Caller) -> dict[str, list[str]]:
    """What a home answers to every attack, through a door that stays open."""
    with opened(door, folder, caller) as inside:
        answers = {name: attack(inside) for name, attack in ATTACKS.items()}
    return {name: [NAMES.sub("", said.replace(str(folder), "")) for said in found] for name, found in answers.items()}


def heard(factory: pytest.TempPathFactory, door: str, who: str) -> list[dict[str, list[str]]]:
    """What both homes answer one caller; asked once for all attacks, since a process of its own takes long to start."""
    caller, hidden = CALLERS[who]
    if (door, who) not in HEARD:
        homes = [stands(factory.mktemp("pair"), hidden, which) for which in (0, 1)]
        HEARD[door, who] = [answered(door, folder, caller) for folder in homes]
    return HEARD[door, who]


QUICK = ("a group", "a stranger")  # who comes by every door in each run; the others do in the long one


def is_quick(door: str, who: str) -> bool:
    """By a process of its own, which takes long to start, only one comes in each run."""
    return door == "python" or (who in QUICK and (door, who) != ("stdio", "a stranger"))


WAYS = [
    pytest.param(door, who, marks=[] if is_quick(door, who) else [pytest.mark.long])
    for door in DOORS
    for who in CALLERS
]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize(("door", "who"), WAYS)
def test_both_homes_answer_alike(tmp_path_factory: pytest.TempPathFactory, door: str, who: str, attack: str) -> None:
    one, other = (answers[attack] for answers in heard(tmp_path_factory, door, who))
    assert one == other
    assert PIN not in str(one) or attack.startswith("C2")  # an error may say what was looked for


@pytest.mark.parametrize("who", CALLERS)
def test_the_homes_are_told_apart_by_whoever_sees_them(tmp_path: Path, who: str) -> None:
    """Without this, homes that are the same would pass for a promise that is kept."""
    caller, hidden = CALLERS[who]
    homes = [stands(tmp_path / str(which), hidden, which) for which in (0, 1)]
    need(seen(homes[0], caller) == seen(homes[1], caller), "what differs is hidden")
    one, other = (answered("python", folder, Caller(Scope.MAIN)) for folder in homes)
    apart = {attack for attack in ATTACKS if one[attack] != other[attack]}
    assert len(apart) > 8
