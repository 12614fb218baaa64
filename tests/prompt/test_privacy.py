"""Nobody reads what is kept from them: canaries in files, sections, copies and layers, against a table of our own.

The table below is written from the design's file table and the five seed texts, and knows nothing of `anima.layout`
or `anima.layout.dialects`: every canary carries who may see it, and whatever a prompt shows must be allowed by that.
"""

from __future__ import annotations

import json
import os
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from anima import BadConfig, Home, Piece, Prompt, Runtime
from anima.model import Scope
from anima.prompt import Secret, flat, tells
from anima.text.markdown import view
from conftest import HOMES, NOW

SCOPES = {"m": "main", "g": "group", "s": "subagent", "c": "cron", "h": "heartbeat"}
DIALECTS = ("anima", "openclaw", "nexo", "carapace", "ironclaw", "agentscope")
TODAY, YESTERDAY, LONG_AGO = "2026-05-08", "2026-05-07", "2026-04-30"
OWNER, ANA, BOB = "luis", "ana", "bob"

# Who sees which file, by the first letters of the scopes. What is in no table is never injected.
AGENTS = {"AGENTS.md": "mgsch"}
TABLE: dict[str, dict[str, str]] = {
    "anima": AGENTS
    | {"IDENTITY.md": "mgch", "SOUL.md": "mgch", "USER.md": "mch", "TOOLS.md": "msch", "MEMORY.md": "mh"}
    | {"knowledge/KNOWLEDGE.md": "mh", "HEARTBEAT.md": "h", "BOOTSTRAP.md": "m"},
    "openclaw": AGENTS
    | {"IDENTITY.md": "mgch", "SOUL.md": "mch", "USER.md": "mch", "TOOLS.md": "mgsch", "MEMORY.md": "mh"}
    | {"HEARTBEAT.md": "mh", "BOOTSTRAP.md": "m"},
    "nexo": AGENTS
    | {"IDENTITY.md": "mgsch", "SOUL.md": "mgsch", "USER.md": "mch", "MEMORY.md": "mh", "HEARTBEAT.md": "h"},
    "carapace": AGENTS | {"SOUL.md": "mgch", "USER.md": "mch", "memory/CORE.md": "m", "HEARTBEAT.md": "ch"},
    "ironclaw": AGENTS
    | {"IDENTITY.md": "mgch", "SOUL.md": "mgch", "USER.md": "mch", "TOOLS.md": "msch", "MEMORY.md": "mh"}
    | {"HEARTBEAT.md": "h", "BOOTSTRAP.md": "m"},
    "agentscope": AGENTS | {"MEMORY.md": "mh", "knowledge/KNOWLEDGE.md": "mch"},
}
LOGS = {
    "anima": "memory",
    "openclaw": "memory",
    "nexo": "notes",
    "carapace": "memory/daily",
    "ironclaw": "daily",
    "agentscope": None,
}
for _dialect, _folder in LOGS.items():
    for _name in (TODAY, f"{TODAY}-boat", YESTERDAY) if _folder else ():
        TABLE[_dialect][f"{_folder}/{_name}.md"] = "mh"
CURATED = {dialect: "memory/CORE.md" if dialect == "carapace" else "MEMORY.md" for dialect in DIALECTS}
LISTED = "mch"  # who sees a USER.md that the dialect itself does not inject (AgentScope), where it is listed
NEVER = ("DREAMS.md", "bank/world.md", "memory/topics/boat.md", f"memory/{LONG_AGO}.md", "sessions/old.md", "BOOT.md")


@dataclass(frozen=True)
class Canary:
    """A word, and who may see it."""

    word: str
    scopes: frozenset[str]  # in which the owner sees it
    others: frozenset[str] = frozenset()  # in which any other sender sees it, too
    layer: str = ""  # whose own it is, when not the owner's


class Plan:
    """A home to be written: texts by path, and every canary in them."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files = files or {}
        self.canaries: list[Canary] = []
        self.links: list[tuple[str, str, str]] = []  # (kind, path, target)
        self.additional: list[dict[str, object]] = []

    def __repr__(self) -> str:
        return f"Plan({len(self.files)} files, {self.additional}, {self.links})"

    def text_around(self, word: str) -> list[str]:
        return [raw.decode() for raw in self.files.values() if word.encode() in raw]

    def allowed(self, canary: Canary, scope: str, sender: str) -> bool:
        if sender == OWNER and scope == "main":
            return True  # the owner, alone
        if canary.layer:
            return sender == canary.layer and scope in canary.scopes
        return scope in (canary.scopes if sender == OWNER else canary.others)


# -- documents with sections whose visibility is known because of how they were made ------------------------------------

BODIES = (
    "{} stands alone.",
    "- a point about {}",
    "- a point\n---\nand {} after a rule",
    "1. first\n***\n{} after stars",
    "```sh\n# a comment, not a heading\necho {}\n```",
    "~~~\n## No heading <!-- share: group, subagent, cron, heartbeat -->\n{}\n~~~",
    "- ```\n  # in a list\n  {}\n  ```",
    "<!--\n# In a comment\n{}\n-->",
    "half a comment <!-- and {}",
    "> ## Quoted <!-- share: group, subagent, cron, heartbeat -->\n> {}",
    "<div>\n## In markup\n{}\n</div>",
    "<pre>\n\n# Still in markup\n{}\n</pre>",
    "    # indented {}",
    "- item\n\n  ## Heading of an item\n  {}",
    "| a | b |\n|---|---|\n| {} | x |",
    "- {}\n  ---",
    "word\n: {}\n",
    "[link]: /{}\n---",
)
PLAIN_BODIES = BODIES[:2]
MARKS = ("", "", "private", "share: group", "share: subagent, cron", "share: heartbeat", "PRIVATE", "share: main")


@st.composite
def documents(
    draw: st.DrawFn, name: str, bodies: Sequence[str] = BODIES
) -> tuple[bytes, list[tuple[str, bool, set[str]]]]:
    """(bytes, [(canary, private?, shared with)]): a text made of nested sections."""
    made: list[tuple[str, bool, set[str]]] = []
    lines: list[str] = []

    def add_body(private: bool, shared: set[str]) -> None:
        word = f"Canary{name}{len(made)}x"
        lines.append(draw(st.sampled_from(bodies)).format(word) + "\n")
        made.append((word, private, shared))

    def add_section(level: int, private: bool, shared: set[str]) -> None:
        mark = draw(st.sampled_from(MARKS))
        private = private or mark.lower() == "private"
        shared = shared | ({s for s in SCOPES.values() if s in mark} if mark.startswith("share") else set())
        lines.append(draw(heading_lines(level, f"Part {len(lines)}" + (f" <!-- {mark} -->" if mark else ""))))
        for _ in range(draw(st.integers(0, 2))):
            add_body(private, shared)
        if level < 4:
            below = level + draw(st.integers(1, 2))
            for _ in range(draw(st.integers(0, 2 if level < 2 else 1))):
                add_section(below, private, shared)

    if draw(st.booleans()):
        lines.append(f"---\ntitle: Canary{name}front\n---\n")
        made.append((f"Canary{name}front", False, set()))
    add_body(False, set())
    top = draw(st.integers(1, 2))
    for _ in range(draw(st.integers(0, 3))):
        add_section(top, False, set())
    text = "\n".join(lines)
    text = text.replace("\n", "\r\n") if draw(st.booleans()) else text
    return (b"\xef\xbb\xbf" if draw(st.booleans()) else b"") + text.encode(), made


@st.composite
def heading_lines(draw: st.DrawFn, level: int, title: str) -> str:
    styles = [f"{'#' * level} {title}\n", f"{'#' * level}\t{title} {'#' * level}\n"]
    if level <= 2:
        rule = "=" * 4 if level == 1 else "-" * 4
        styles += [f"{title}\n{rule}\n", f"{title}\nin two lines\n{rule}\n"]
    return draw(st.sampled_from(styles))


# -- whole homes ---------------------------------------------------------------------------------------------------------

COPIES = ("bytes", "crlf", "bom", "blanks", "headed", "hard link", "link", "case")


@st.composite
def homes(draw: st.DrawFn, dialect: str, bodies: Sequence[str] = BODIES) -> Plan:
    plan = Plan()
    everywhere = frozenset(SCOPES.values())
    personal = {"USER.md", CURATED[dialect]}

    def put(path: str, scopes: frozenset[str], *, others: bool, layer: str = "") -> None:
        raw, made = draw(documents(name_of(path), bodies))
        plan.files[path] = raw
        for word, private, shared in made:
            owners = frozenset({"main"}) if private else scopes | shared
            theirs = frozenset() if private or not others else scopes | (shared - {"main"})
            plan.canaries.append(Canary(word, owners, theirs, layer))

    for path, letters in TABLE[dialect].items():
        if draw(st.integers(0, 4)):
            is_log = LOGS[dialect] is not None and path.startswith(f"{LOGS[dialect]}/20")
            put(path, frozenset(SCOPES[x] for x in letters), others=path not in personal and not is_log)
    for path in draw(st.sets(st.sampled_from(NEVER), max_size=3)):
        if path not in plan.files:
            is_log = LOGS[dialect] == "memory" and LONG_AGO in path  # never injected by itself, but a log all the same
            is_looked_up = path.startswith(("bank/", "memory/topics/"))  # nor this, but the owner's rituals read it
            letters = "mh" if is_log else LISTED if is_looked_up else "m"
            put(path, frozenset(SCOPES[x] for x in letters), others=False)
    table = TABLE[dialect]
    for who in (ANA, BOB):
        for inner, like in (("USER.md", "USER.md"), ("MEMORY.md", CURATED[dialect]), (f"memory/{TODAY}.md", None)):
            if draw(st.booleans()):
                letters = table.get(like, LISTED) if like else ("mh" if LOGS[dialect] else "")
                put(f"users/{who}/{inner}", frozenset(SCOPES[x] for x in letters) | {"main"}, others=False, layer=who)
    if draw(st.booleans()):
        put("extra/free.md", everywhere, others=True)
        plan.additional.append({"path": "extra/free.md", "scopes": sorted(everywhere)})
    for n in range(draw(st.integers(0, 3))):
        add_copy(draw, plan, n)
    return plan


def name_of(path: str) -> str:
    return "".join(c for c in path if c.isalnum())


def add_copy(draw: st.DrawFn, plan: Plan, n: int) -> None:
    """An additional file for every scope that is a private file in another guise."""
    sources = sorted(path for path in plan.files if not path.startswith("extra/"))
    if not sources:
        return
    source, kind = draw(st.sampled_from(sources)), draw(st.sampled_from(COPIES))
    path, raw = f"extra/copy{n}.md", plan.files[source]
    if kind == "case":
        if source.startswith(("users/", "sessions/")):
            return  # no configuration may name these
        path = source.swapcase() if source.swapcase().upper() == source.upper() else source
    elif kind in ("hard link", "link"):
        plan.links.append((kind, path, source))
    else:
        guises = {
            "bytes": raw,
            "crlf": raw.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
            "bom": b"\xef\xbb\xbf" + raw,
            "blanks": b"\n\n" + raw.replace(b" ", b"   ") + b"\n\n\n",
            "headed": b"# A heading of its own\n\n" + raw.removeprefix(b"\xef\xbb\xbf"),
        }
        plan.files[path] = guises[kind]
    plan.additional.append({"path": path, "scopes": list(SCOPES.values())})


@contextmanager
def built(plan: Plan, dialect: str, **more: object) -> Iterator[tuple[Path, Home]]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, raw in plan.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(raw)
        for kind, path, target in plan.links:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (os.link if kind == "hard link" else os.symlink)(root / target, root / path)
        given_settings = {"dialect": dialect, "timezone": "UTC", "owner": [OWNER], "prompt.additional": plan.additional}
        big = {"prompt.file_chars": 200_000, "prompt.total_chars": 2_000_000}
        with Home.open(root, settings=given_settings | big, clock=lambda: NOW, **more) as home:
            yield root, home


def everything(prompt: Prompt) -> str:
    """All that leaves with a prompt: its text, its manifest, its notes."""
    assert prompt.text == prompt.stable + prompt.volatile
    return "\n".join([prompt.text, *map(str, prompt.manifest), *prompt.notes, str(prompt.persona)])


def assert_nothing_leaks(plan: Plan, home: Home) -> None:
    for scope in SCOPES.values():
        for sender in (OWNER, ANA):
            said = everything(home.prompt(scope=scope, sender=sender))
            leaked = [c for c in plan.canaries if c.word in said and not plan.allowed(c, scope, sender)]
            assert not leaked, (scope, sender, leaked[0], *plan.text_around(leaked[0].word))


steady = settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("dialect", DIALECTS)
@steady
@given(data=st.data())
def test_no_listener_sees_what_is_kept_from_them(dialect: str, data: st.DataObject) -> None:
    plan = data.draw(homes(dialect))
    with built(plan, dialect) as (_, home):
        assert_nothing_leaks(plan, home)


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(steady, max_examples=6)
@given(data=st.data())
def test_whoever_may_see_a_plain_text_sees_it(dialect: str, data: st.DataObject) -> None:
    """The other half: a filter that hides everything would pass the tests above."""
    plan = data.draw(homes(dialect, PLAIN_BODIES))
    plan.additional, plan.links = [], []
    # Of IDENTITY.md some dialects show one line; HEARTBEAT.md is not for every MAIN session.
    shown = TABLE[dialect].keys() - {"IDENTITY.md", "HEARTBEAT.md"}
    with built(plan, dialect) as (_, home):
        for scope in SCOPES.values():
            text = home.prompt(scope=scope, sender=OWNER).text
            for canary in plan.canaries:
                if any(canary.word.startswith(f"Canary{name_of(path)}") for path in shown) and not canary.layer:
                    assert (canary.word in text) == (scope in canary.scopes), (scope, canary)


# -- hooks ---------------------------------------------------------------------------------------------------------------


@st.composite
def hooked(draw: st.DrawFn, plan: Plan) -> list[tuple[str, str, str | None]]:
    """What a careless hook adds: (how, file, path it claims)."""
    sources = sorted(path for path in plan.files if not path.startswith("extra/"))
    how = st.sampled_from(["plain", "headed", "crlf", "as the clock", "as a marker", "into the guide", "by path alone"])
    claims = st.sampled_from([None, "", "notes/mine.md", "AGENTS.md"])
    return draw(st.lists(st.tuples(how, st.sampled_from(sources), claims), min_size=1, max_size=3)) if sources else []


def careless(root: Path, additions: list[tuple[str, str, str | None]]):  # type: ignore[no-untyped-def]
    def hook(pieces: tuple[Piece, ...]) -> list[Piece]:
        made = list(pieces)
        guide = next(piece for piece in pieces if piece.row.role == "agents")
        clock = next(piece for piece in pieces if piece.row.role == "runtime")
        for how, path, claim in additions:
            text = (root / path).read_bytes().decode("utf-8")
            claimed = path if claim is None else claim
            if how == "into the guide":
                made[made.index(guide)] = guide = replace(guide, text=guide.text + "\n\n" + text, problem=None)
            elif how == "as the clock":
                made.append(replace(clock, text=text, path=claimed))
            elif how == "as a marker":
                made.append(Piece(row=guide.row, path=claimed, text=text, problem="missing"))
            elif how == "by path alone":
                made.append(Piece(row=guide.row, path=path, text=text[: len(text) // 2]))
            else:
                shape = {"headed": "# Look\n\n" + text, "crlf": "\r\n".join(text.splitlines())}.get(how, text)
                made.append(Piece(row=guide.row, path=claimed, text=shape, chars_raw=len(text)))
        return made

    return hook


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(steady, max_examples=10)
@given(data=st.data())
def test_no_hook_can_undo_the_filter(dialect: str, data: st.DataObject) -> None:
    plan = data.draw(homes(dialect))
    additions = data.draw(hooked(plan))
    with built(plan, dialect) as (root, home):
        home._hook = careless(root, additions)  # the root is known only now
        assert_nothing_leaks(plan, home)


def test_a_hook_may_add_what_everybody_may_see(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("# Guide\n")
    (tmp_path / "MEMORY.md").write_text("# Memory\n\n- the key hangs behind the door\n")

    def hook(pieces: tuple[Piece, ...]) -> list[Piece]:
        row = next(piece.row for piece in pieces if piece.row.role == "agents")
        return [*pieces, Piece(row=row, path="", text="It rains in Bogota.")]

    with Home.open(tmp_path, hook=hook, clock=lambda: NOW) as home:
        assert "It rains in Bogota." in home.prompt(scope="group").text


# -- guises that deserve a name ------------------------------------------------------------------------------------------

SECRET = "# Memory\n\n" + "".join(f"- {n}\n" for n in range(40)) + "- CanaryKeyBehindTheDoor\n"


@pytest.mark.parametrize("guise", ["bytes", "crlf", "short lines", "link", "hard link", "case", "folder case", "nfd"])
@pytest.mark.parametrize("target", ["MEMORY.md", "USER.md", f"memory/{TODAY}.md", "users/bob/MEMORY.md", "DREAMS.md"])
def test_a_private_file_in_any_guise_stays_private(tmp_path: Path, guise: str, target: str) -> None:
    plan = Plan(files={"AGENTS.md": b"# Guide\n", target: (SECRET + "- ano caf\u00e9\n").encode()})
    path = "extra.md"
    if guise in ("link", "hard link"):
        plan.links.append((guise, path, target))
    elif guise == "case":
        path = target.rpartition("/")[0] + "/" * ("/" in target) + target.rpartition("/")[2].swapcase()
    elif guise == "folder case":
        path = target.upper().replace(".MD", ".md")
    else:
        text = plan.files[target].decode()
        plan.files[path] = {
            "bytes": text,
            "crlf": text.replace("\n", "\r\n"),
            "short lines": text.replace("\n", "\n\n\n\n"),
            "nfd": text.replace("\u00e9", "e\u0301"),
        }[guise].encode()
    plan.additional.append({"path": path, "scopes": list(SCOPES.values())})
    if "case" in guise and target.startswith("users/"):
        with pytest.raises(BadConfig, match="others said"), built(plan, "anima"):
            pass
        return
    with built(plan, "anima") as (_, home):
        for scope, sender in (("group", OWNER), ("subagent", OWNER), ("main", ANA), ("cron", ANA)):
            if target == "USER.md" and scope in ("cron",) and sender == OWNER:
                continue
            assert "CanaryKey" not in everything(home.prompt(scope=scope, sender=sender)), (scope, sender)
        main = home.prompt(scope="main", sender=OWNER)
        assert ("CanaryKey" in main.text) == (guise != "link" or target not in ("users/bob/MEMORY.md", "DREAMS.md"))


@pytest.mark.parametrize("file", ["MEMORY.md", f"memory/{TODAY}.md", "USER.md"])
def test_no_configuration_can_make_a_private_file_the_soul(file: str) -> None:
    plan = Plan(files={"AGENTS.md": b"# Guide\n", "SOUL.md": b"# Soul\n", file: SECRET.encode()})
    with built(plan, "anima") as (root, _):
        asked = {
            "dialect": "anima",
            "timezone": "UTC",
            "persona.file": file,
            "persona.at": "00:00",
            "persona.duration": "24h",
            "owner": [OWNER],
        }
        with Home.open(root, settings=asked, clock=lambda: NOW) as home:
            for scope, sender in (("group", OWNER), ("main", ANA)):
                assert "CanaryKey" not in everything(home.prompt(scope=scope, sender=sender))


def test_a_soul_that_is_a_copy_of_memory_is_not_worn_in_a_group() -> None:
    plan = Plan(files={"SOUL.md": b"# Soul\n", "MEMORY.md": SECRET.encode(), "SOUL_EVIL.md": SECRET.encode()})
    with built(plan, "anima") as (root, _):
        asked = {"dialect": "anima", "timezone": "UTC", "persona.chance": 1}
        with Home.open(root, settings=asked, clock=lambda: NOW) as home:
            assert "CanaryKey" not in everything(home.prompt(scope="group"))


def test_the_names_of_logs_are_kept_from_a_group_too(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / f"{TODAY}-CanaryWedding.md").write_text("a day\n")
    with Home.open(tmp_path, settings={"timezone": "UTC"}, clock=lambda: NOW) as home:
        assert "CanaryWedding" not in everything(home.prompt(scope="group"))
        assert "CanaryWedding" in everything(home.prompt(scope="main"))


def test_a_section_shared_with_main_is_still_the_owners() -> None:
    shared = b"# Memory\n\n## Plans <!-- share: main, group -->\n\nCanaryKey\n"
    plan = Plan(files={"MEMORY.md": shared, "users/bob/MEMORY.md": shared})
    plan.additional = [{"path": "MEMORY.md", "scopes": list(SCOPES.values())}]
    with built(plan, "anima") as (_, home):
        for scope in SCOPES.values():
            assert "CanaryKey" not in everything(home.prompt(scope=scope, sender=ANA)), scope
        assert "CanaryKey" in home.prompt(scope="group", sender=OWNER).text


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("path", [*(path for path in NEVER if path != "sessions/old.md"), "USER.md", "notes/boat.md"])
def test_what_a_heading_shares_of_the_owners_files_is_no_other_senders(dialect: str, path: str) -> None:
    """In half of the dialects `memory/` is no folder of logs; what stands there is the owner's all the same."""
    text = b"# A day\n\nquiet\n\n## Boat <!-- share: group, subagent, cron, heartbeat -->\n\nCanaryKey\n"
    plan = Plan(files={"AGENTS.md": b"# Guide\n", path: text})
    plan.additional = [{"path": path.swapcase(), "scopes": ["main", "cron", "heartbeat"]}]
    with built(plan, dialect) as (_, home):
        for scope in ("group", "subagent"):
            assert "CanaryKey" in home.prompt(scope=scope, sender=OWNER).text
            assert "CanaryKey" not in everything(home.prompt(scope=scope, sender=ANA))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("scope", SCOPES.values())
def test_the_canaries_of_the_example_homes_stay_where_they_belong(dialect: str, scope: str) -> None:
    planted = json.loads((HOMES / "canaries.json").read_text(encoding="utf-8"))[dialect]
    asked = {"dialect": dialect, "timezone": "America/Bogota"}
    with Home.open(HOMES / dialect, settings=asked, clock=lambda: NOW) as home:
        said = everything(home.prompt(scope=scope, runtime=Runtime(host="Linux")))
    for place, words in planted.items():
        path, _, section = place.partition("#")
        seen = scope in {SCOPES[x] for x in TABLE[dialect].get(path, "")}
        if path == "VISION.md":  # listed as an additional file of this home
            seen = scope in ("main", "cron", "heartbeat")
        if section == "Health":
            seen = scope == "main"
        elif section == "Kitchen rebuild":
            seen = seen or scope == "subagent"
        for word in words:
            assert (word in said) == seen, (word, scope)


# -- section marks against a real Markdown parser ------------------------------------------------------------------------

LINES = (
    "text",
    "text",
    "",
    "",
    "# One",
    "## Two",
    "### Three",
    " ## Indented",
    "    ## Code",
    "####### Seven",
    "#Hash",
    "## Secret <!-- private -->",
    "# Secret <!--private--> #",
    "### Shared <!-- share: group -->",
    "# Shared <!-- share: group -->",
    "Secret <!-- private -->",
    "Shared <!-- share: group -->",
    "===",
    "---",
    "-",
    "***",
    "```",
    "~~~",
    "````",
    "``` sh",
    "- item",
    "- ## Heading in a list",
    "  more of it",
    "  ```",
    "  ## Inside",
    "> quote",
    "> ## Secret <!-- private -->",
    "> ```",
    "1. one",
    "<!-- remark -->",
    "<!--",
    "-->",
    "<div>",
    "</div>",
    "<b>bold</b>",
    "<pre>",
    "</pre>",
    "| a | b |",
    "|---|---|",
    "[link]: /url",
    "\\# escaped",
    "\t## Tabbed",
    "- ```",
    "    ```",
    "## Secret <!-- private",
    "##",
    "<?php",
    "?>",
    "* * *",
    "+ plus",
    "2) two",
    "<!-- half",
    "text <!-- half",
)


def lines_seen_by_a_parser(text: str, visible: bool) -> set[int]:
    """Lines a group may see at most: what CommonMark calls headings at the top level decides, and nothing of ours."""
    lines = text.split("\n")
    tops = [
        (int(opening.tag[1]), opening.map[0], inline.content)
        for opening, inline in pairs(MarkdownIt("commonmark").parse(text))
    ]
    allowed = set(range(len(lines))) if visible else set()
    spans = []
    for n, (level, start, content) in enumerate(tops):
        end = next((begin for other, begin, _ in tops[n + 1 :] if other <= level), len(lines))
        spans.append((range(start, end), content))
    for span, content in spans:
        if "share: group" in content:
            allowed |= set(span)
    for span, content in spans:
        if "<!-- private" in content or "<!--private" in content:
            allowed -= set(span)
    return allowed


def pairs(tokens: list) -> Iterator[tuple]:  # type: ignore[type-arg]
    for n, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0:
            yield token, tokens[n + 1]


@settings(max_examples=600)
@given(
    lines=st.lists(st.sampled_from(LINES), max_size=14),
    visible=st.booleans(),
    ending=st.sampled_from(["\n", "\r\n", "\r"]),
)
@example(lines=["## Secret <!-- private -->", "- item", "---", "text"], visible=True, ending="\n")
@example(lines=["# Shared <!-- share: group -->", "text <!-- half", "# One", "text"], visible=False, ending="\n")
@example(lines=["Secret <!-- private -->", "text", "===", "text"], visible=True, ending="\n")
def test_a_group_never_sees_more_of_a_text_than_its_headings_allow(
    lines: list[str], visible: bool, ending: str
) -> None:
    numbered = [
        f"{line} n{n}n" if line.strip(" -=*#`~\t") or line in ("# One",) else line for n, line in enumerate(lines)
    ]
    text = "\n".join(numbered)
    shown = view(text.replace("\n", ending), scope=Scope.GROUP, visible=visible, owner=True).text
    allowed = lines_seen_by_a_parser(text, visible)
    seen = {n for n in range(len(lines)) if f" n{n}n" in shown}
    assert seen <= allowed, (sorted(seen - allowed), text)


# -- copies --------------------------------------------------------------------------------------------------------------

WORDS = st.lists(st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=8), min_size=6, max_size=60)
BLANKS = st.sampled_from([" ", "  ", "\n", "\r\n", "\t", "\n\n\n", "\u00a0"])


def secret(text: str) -> Secret:
    return Secret(text=text)


@given(words=WORDS, blanks=st.lists(BLANKS, min_size=1, max_size=7), bom=st.booleans())
def test_a_copy_is_known_whatever_happened_to_its_blanks(words: list[str], blanks: list[str], bom: bool) -> None:
    text = " ".join(words)
    copy = "\ufeff" * bom + "".join(word + blanks[n % len(blanks)] for n, word in enumerate(words))
    if flat(text):
        assert flat(copy) == flat(text)
        assert tells(copy, [secret(text)], whole=True)


@given(words=WORDS, form=st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_a_copy_is_known_in_any_unicode_form(words: list[str], form: str) -> None:
    text = " ".join(words)
    if flat(text):
        assert tells(unicodedata.normalize(form, text), [secret(text)], whole=True)


@given(
    words=WORDS, before=st.text(max_size=40), after=st.text(max_size=40), newline=st.sampled_from(["\n", "\r\n", "\r"])
)
def test_a_text_that_holds_a_secret_whole_tells_it(words: list[str], before: str, after: str, newline: str) -> None:
    text = newline.join(["# Memory of things past", *words])
    assert tells(f"{before}{newline}{text}{newline}{after}", [secret(text.replace(newline, "\n"))], whole=False)


def test_nothing_is_told_by_a_text_of_its_own() -> None:
    kept = [secret("# Memory\n\n- the key hangs behind the blue door\n"), secret("# x"), secret(""), secret("\n \n")]

    assert not tells("# Memory\n\n- the key hangs behind the red door\n", kept, whole=False)
    assert not tells("a letter with # x in it", kept, whole=False)
    assert not tells("", kept, whole=True)


def test_a_huge_text_is_compared_in_no_time() -> None:
    text = "the same words over and over\n" * 100_000

    assert not tells(text + "x", [secret(text + "y")] * 3, whole=True)
