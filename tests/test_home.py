"""A home is made, opened, read and trusted; and what stood there before is left as it was."""

from __future__ import annotations

import hashlib
import os
import random
import re
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest

import anima
from anima import (
    BadArguments,
    BadConfig,
    BadPath,
    BadText,
    Damaged,
    DocPath,
    Home,
    NewerFormat,
    NoSuchDocument,
    NoSuchHome,
    NoSuchRevision,
    NotFound,
    Refused,
    Scope,
    StaleWrite,
)
from anima.cli import run
from anima.layout import STARTERS
from anima.ledger import FORMAT
from anima.model import Receipt, Status, digest_of
from owning import as_owner

CORE = {name for name in STARTERS if name != "BOOTSTRAP.md"}
Clock = Callable[[], datetime]


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def visible(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# -- making --------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder of the system in which nothing can be made")
def test_no_home_is_made_among_the_systems_own_things() -> None:
    with pytest.raises(Refused, match="this folder is the system's"):
        Home.create("/proc")


def test_a_new_home_has_the_core_files_a_memory_and_the_first_conversation(tmp_path: Path) -> None:
    with Home.create(tmp_path / "aria", name="Aria", emoji="🌿") as home:
        assert visible(tmp_path / "aria") == {*STARTERS, "anima.toml", "memory"}
        assert (home.identity.name, home.dialect) == ("Aria", "anima")
        assert home.config.trusted
        assert "# MEMORY" in home.prompt(scope=Scope.MAIN).text


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_new_home_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    with umask(mask):
        Home.create(tmp_path / "aria", name="Aria").close()

    assert stat.S_IMODE((tmp_path / "aria").stat().st_mode) == 0o700
    for path in (tmp_path / "aria").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_making_a_home_twice_changes_nothing(tmp_path: Path) -> None:
    Home.create(tmp_path / "aria", name="Aria").close()
    (tmp_path / "aria" / "SOUL.md").write_text("mine now", encoding="utf-8")
    (tmp_path / "aria" / "BOOTSTRAP.md").unlink()
    documents = {name: raw for name, raw in bytes_of(tmp_path / "aria").items() if not name.startswith(".")}

    with pytest.warns(UserWarning, match="left as it is: its name is Aria, not Somebody else") as told:
        Home.create(tmp_path / "aria", name="Somebody else").close()
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match="left as it is: its emoji is none, not 🌿"):
        Home.create(tmp_path / "aria", emoji="🌿").close()
    Home.create(tmp_path / "aria", name="Aria").close()  # no word where nothing is left out

    after = bytes_of(tmp_path / "aria")
    assert {name: raw for name, raw in after.items() if not name.startswith(".")} == documents


def test_what_stands_in_a_folder_is_left_as_it_is_and_the_rest_is_added(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir(mode=0o755)
    (folder / "soul.md").write_text("I was here.\r\n", encoding="utf-8", newline="")
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    Home.create(folder, name="Aria").close()

    assert (folder / "soul.md").read_bytes() == b"I was here.\r\n"
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert visible(folder) == {*(CORE - {"SOUL.md"}), "soul.md", "notes.txt", "anima.toml", "memory"}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


@pytest.mark.parametrize("sign", ["SOUL.md", "memory", "user.md", "daily"])
def test_the_first_conversation_is_only_for_a_brand_new_home(tmp_path: Path, sign: str) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    if "." in sign:
        (folder / sign).write_text("x", encoding="utf-8")
    else:
        (folder / sign).mkdir()
    Home.create(folder, name="Aria").close()

    assert "BOOTSTRAP.md" not in visible(folder)


def test_a_file_where_a_home_should_be_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "aria").write_text("a file", encoding="utf-8")

    with pytest.raises(Refused, match="a home is a folder"):
        Home.create(tmp_path / "aria")
    assert (tmp_path / "aria").read_text(encoding="utf-8") == "a file"


@pytest.mark.parametrize("name", ["two\nlines", "   ", "<!-- x", "_(pick something)_", "\x1b[31m"])
def test_a_name_that_cannot_be_read_back_makes_no_home(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadArguments):
        Home.create(tmp_path / "aria", name=name)
    assert not (tmp_path / "aria").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_users_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)

    for verb in (Home.create, Home.open):
        with pytest.raises(Refused, match="belongs to another user"):
            verb(tmp_path / "theirs")
    assert list((tmp_path / "theirs").iterdir()) == []


def test_a_home_and_a_session_print_as_what_they_are(tmp_path: Path) -> None:
    with Home.create(tmp_path / "aria") as home, home.session(scope="group", channel="telegram") as session:
        assert repr(home) == f"<Home {tmp_path / 'aria'}, anima>"
        assert session.id in repr(session) and "group" in repr(session) and "channel='telegram'" in repr(session)
    assert repr(home).endswith(", closed>")


# -- a home that vanished ------------------------------------------------------------------------------------------------


def vanish(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


@pytest.mark.parametrize("leave_a_mount_point", [False, True])
def test_a_home_that_vanished_is_not_buried_under_a_new_one(tmp_path: Path, leave_a_mount_point: bool) -> None:
    Home.create(tmp_path / "aria", name="Aria", clock=lambda: datetime(2026, 5, 8, tzinfo=UTC)).close()
    vanish(tmp_path / "aria")
    if leave_a_mount_point:
        (tmp_path / "aria").mkdir()

    with pytest.raises(Refused, match=r"2026-05-08.*vanished; nothing was written") as caught:
        Home.create(tmp_path / "aria", name="Aria")
    assert caught.value.rule == "vanished-home"
    assert not (tmp_path / "aria").exists() or list((tmp_path / "aria").iterdir()) == []


def test_a_new_home_is_made_where_one_vanished_when_that_is_said(tmp_path: Path) -> None:
    Home.create(tmp_path / "aria", name="Aria").close()
    vanish(tmp_path / "aria")

    with Home.create(tmp_path / "aria", name="Bea", again=True) as home:
        assert home.identity.name == "Bea"


def test_opening_a_home_that_vanished_says_when_it_was_made(tmp_path: Path) -> None:
    Home.create(tmp_path / "aria", clock=lambda: datetime(2026, 5, 8, tzinfo=UTC)).close()
    vanish(tmp_path / "aria")

    with pytest.raises(NoSuchHome, match="made here on 2026-05-08, and it has vanished"):
        Home.open(tmp_path / "aria")
    with pytest.raises(NoSuchHome, match="there is no such folder"):
        Home.open(tmp_path / "never-was")


def test_a_home_behind_a_link_is_known_to_have_vanished_too(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    Home.create(tmp_path / "link" / "aria").close()
    vanish(tmp_path / "disk" / "aria")

    with pytest.raises(Refused, match="vanished"):
        Home.create(tmp_path / "link" / "aria")


# -- trust ---------------------------------------------------------------------------------------------------------------

LOOSE = "[gate]\npreset = 'open'\n[index]\nurl = 'http://example.org'\n"


def test_a_folder_somebody_else_made_is_trusted_only_when_the_owner_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "downloaded"
    folder.mkdir()
    (folder / "anima.toml").write_text(LOOSE, encoding="utf-8")

    with Home.open(folder) as home:
        assert not home.config.trusted
        assert (home.config.gate.preset, home.config.index.url) == ("", "")
        assert [key for key, _ in home.config.ignored] == ["gate.preset", "index.url"]
        home.trust()
    with Home.open(folder) as home:
        assert home.config.trusted
        assert home.config.gate.preset == "open"


def test_making_a_home_in_a_folder_trusts_no_configuration_that_was_there(tmp_path: Path) -> None:
    folder = tmp_path / "downloaded"
    folder.mkdir()
    (folder / "anima.toml").write_text(LOOSE, encoding="utf-8")

    with Home.create(folder) as home:
        assert not home.config.trusted
        assert home.config.gate.preset == ""


def test_trust_is_bound_to_the_folder_and_not_to_its_place(tmp_path: Path) -> None:
    Home.create(tmp_path / "aria").close()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "anima.toml").write_text(LOOSE, encoding="utf-8")
    vanish(tmp_path / "aria")
    (tmp_path / "other").rename(tmp_path / "aria")

    with Home.open(tmp_path / "aria") as home:
        assert not home.config.trusted


def test_no_home_can_vouch_for_itself(tmp_path: Path) -> None:
    folder = tmp_path / "downloaded"
    folder.mkdir()
    (folder / "anima.toml").write_text(LOOSE, encoding="utf-8")
    identity = folder.stat().st_ino
    for place in (folder, folder / ".anima"):
        place.mkdir(exist_ok=True)
        (place / "homes.json").write_text(
            f'{{"{folder}": {{"trusted": true, "identity": "{identity}"}}}}', encoding="utf-8"
        )

    with Home.open(folder) as home:
        assert not home.config.trusted


@pytest.mark.parametrize("content", ["{", "[]", '{"x": 1}', "\x00"])
def test_a_damaged_list_of_homes_stops_no_home_from_opening(tmp_path: Path, content: str) -> None:
    Home.create(tmp_path / "aria", name="Aria").close()
    Path(os.environ["ANIMA_CONFIG"], "homes.json").write_text(content, encoding="utf-8")

    with Home.open(tmp_path / "aria") as home:
        assert not home.config.trusted
        assert home.identity.name == "Aria"


def test_a_list_that_cannot_be_written_stops_no_home_from_being_made(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file, where a folder should be", encoding="utf-8")
    env = {"ANIMA_CONFIG": str(tmp_path / "config")}

    with Home.create(tmp_path / "aria", name="Aria", env=env) as home:
        assert home.identity.name == "Aria"
        assert not home.config.trusted


# -- opening -------------------------------------------------------------------------------------------------------------


def test_opening_a_folder_changes_nothing_in_it(example: Callable[[str], Path], clock: Clock) -> None:
    for dialect in ("anima", "openclaw", "nexo", "carapace", "ironclaw", "agentscope"):
        folder = example(dialect)
        before = bytes_of(folder)
        with Home.open(folder, clock=clock) as home:
            assert home.dialect == dialect
            for scope in Scope:
                home.prompt(scope=scope)
            home.identity.resolved()
            home.list_all()

        assert bytes_of(folder) == before


def test_a_folder_that_fits_no_dialect_is_ours_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "words/notes.md").touch()
    with Home.open(tmp_path / "words") as home:
        assert (home.dialect, home.site.detected_by) == ("anima", "nothing in it belongs to another dialect")


def test_an_agent_whose_own_folder_is_empty_is_told_of_that_one_and_can_be_given_a_home(tmp_path: Path) -> None:
    Home.create(tmp_path / "aria", name="Aria").close()
    (tmp_path / "scout").mkdir()
    with (tmp_path / "aria/anima.toml").open("a", encoding="utf-8") as file:
        file.write('\n[[agent]]\nid = "aria"\n\n[[agent]]\nid = "scout"\nhome = "../scout"\n')
    with pytest.raises(NoSuchHome, match=f"^{tmp_path}/scout is an empty folder, and no home") as refused:
        Home.open(tmp_path / "aria", agent="scout")
    assert refused.value.hint == f"anima init {tmp_path}/scout makes one there"
    Home.create(tmp_path / "aria", agent="scout", name="Scout").close()
    with Home.open(tmp_path / "aria", agent="scout") as home:
        assert (home.name, home.identity.name) == (str(tmp_path / "scout"), "Scout")


def test_an_empty_folder_is_no_home_until_somebody_says_which_dialect_it_will_have(tmp_path: Path) -> None:
    (tmp_path / "my aria").mkdir()
    with pytest.raises(NoSuchHome, match="my aria is an empty folder, and no home") as refused:
        Home.open(tmp_path / "my aria")
    assert refused.value.hint == f"anima init '{tmp_path}/my aria' makes one there"
    assert refused.value.__notes__ == [f"What to do: {refused.value.hint} (in Python: Home.create)"]
    with Home.open(tmp_path / "my aria", settings={"dialect": "nexo"}) as home:
        assert (home.dialect, home.list()) == ("nexo", ())


def test_a_dialect_can_be_forced_by_the_file_a_variable_or_a_setting(tmp_path: Path) -> None:
    env = {"ANIMA_CONFIG": str(tmp_path / "config")}
    (tmp_path / "anima.toml").write_text('dialect = "nexo"', encoding="utf-8")

    with Home.open(tmp_path, env=env) as home:
        assert home.dialect == "nexo"
    with Home.open(tmp_path, env={**env, "ANIMA_DIALECT": "carapace"}) as home:
        assert (home.dialect, home.site.detected_by) == ("carapace", "dialect is set by ANIMA_DIALECT")
    with Home.open(tmp_path, env=env, settings={"dialect": "ironclaw"}) as home:
        assert home.dialect == "ironclaw"


@pytest.mark.parametrize(
    ("raw", "error"),
    [(b"dialect = ", BadConfig), (b"dialect = 'x'", BadConfig), (b"\xff", BadText), (b"[promt]", BadConfig)],
)
def test_a_broken_configuration_is_a_named_error_and_stays_as_it_is(
    tmp_path: Path, raw: bytes, error: type[Exception]
) -> None:
    (tmp_path / "anima.toml").write_bytes(raw)

    with pytest.raises(error, match=r"anima\.toml"):
        Home.open(tmp_path)
    assert (tmp_path / "anima.toml").read_bytes() == raw


def test_a_configuration_that_is_no_file_is_a_named_error(tmp_path: Path) -> None:
    (tmp_path / "anima.toml").mkdir()
    with pytest.raises(BadPath, match="a folder, not a document"):
        Home.open(tmp_path)


@pytest.mark.parametrize("path", ["~nobody-of-that-name/aria", "a\0b"])
def test_a_path_that_can_be_no_folder_is_a_named_error(path: str) -> None:
    with pytest.raises((NoSuchHome, BadArguments, BadPath, Refused)):
        Home.open(path)


def newer_number(folder: Path) -> None:
    (folder / ".anima/format").write_bytes(b'{"format":%d}\n' % (FORMAT + 1))


def newer_head(folder: Path) -> None:
    ledger = folder / ".anima/ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"format":%d' % FORMAT, b'"format":%d' % (FORMAT + 1), 1))


@pytest.mark.parametrize("damage", [newer_number, newer_head])
def test_a_newer_home_is_refused_before_anything_is_read_or_touched(
    tmp_path: Path, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    with Home.create(tmp_path / "aria", name="Aria") as home:
        home.remember("Something")
    damage(tmp_path / "aria")
    before = bytes_of(tmp_path / "aria")
    with pytest.raises(
        NewerFormat, match=f"has format {FORMAT + 1}, and this version of anima reads up to {FORMAT}"
    ) as told:
        Home.open(tmp_path / "aria")
    assert (told.value.exit_code, told.value.http_status) == (5, 501)
    assert (told.value.found, told.value.known) == (FORMAT + 1, FORMAT) and told.value.hint
    for words in (["prompt"], ["note", "x"], ["search", "x"]):
        assert run(as_owner(*words, "--home", tmp_path / "aria")) == 5
        assert "newer" in capsys.readouterr().err
    assert bytes_of(tmp_path / "aria") == before


def test_nothing_stays_open_when_opening_fails(tmp_path: Path) -> None:
    (tmp_path / "anima.toml").write_text("[", encoding="utf-8")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pytest.raises(BadConfig):
            Home.open(tmp_path)

    assert len(os.listdir("/proc/self/fd")) == before


def test_closing_twice_does_no_harm(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "aria")
    home.close()
    home.close()


# -- several agents --------------------------------------------------------------------------------------------------------


def test_each_agent_of_a_configuration_has_a_home_and_a_name_of_its_own(tmp_path: Path) -> None:
    for folder, name in (("aria", "Aria"), ("scout", "Scout")):
        Home.create(tmp_path / folder, name=name).close()
    with (tmp_path / "aria" / "anima.toml").open("a", encoding="utf-8") as file:
        file.write('\n[identity]\nemoji = "🌿"\n[[agent]]\nid = "aria"\nallowed_delegates = ["scout"]\n')
        file.write('[[agent]]\nid = "scout"\nhome = "../scout"\nemoji = "🐕"\n')

    with Home.open(tmp_path / "aria") as home:
        assert (home.agent, home.identity.name) == ("aria", "Aria")
        assert home.config.agent[0].allowed_delegates == ("scout",)
    with Home.open(tmp_path / "aria", agent="scout") as home:
        who = home.identity.resolved()
        assert (home.name, who.name.value) == (str(tmp_path / "scout"), "Scout")
        assert who.emoji is not None
        assert (who.emoji.value, who.emoji.source) == ("🐕", "agent scout")
    with pytest.raises(BadConfig, match="there is no agent 'nobody'"):
        Home.open(tmp_path / "aria", agent="nobody")


# -- reading -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def home(example: Callable[[str], Path], clock: Clock) -> Iterator[Home]:
    with Home.open(example("anima"), clock=clock, dice=random.Random(1)) as opened:
        yield opened


def test_a_document_is_read_by_its_path_in_any_spelling(home: Home) -> None:
    assert home.read("MEMORY.md") == home.read("memory.md")
    assert home.exists("Memory/2026-05-08.MD")
    assert not home.exists("memory/1999-01-01.md")
    with pytest.raises(NoSuchDocument):
        home.read("nope.md")
    with pytest.raises(BadPath):
        home.read("../anima/MEMORY.md")


def test_a_listing_says_what_is_a_folder(home: Home) -> None:
    entries = {entry.path: entry.is_folder for entry in home.list()}

    assert entries["memory"] and entries["skills"]
    assert entries["SOUL.md"] is False
    assert home.list("memory/") == home.list("memory")
    assert [entry.path for entry in home.list("bank/entities")] == ["bank/entities/ana.md"]


def test_a_tree_goes_as_deep_as_it_is_told(home: Home) -> None:
    shallow, deep = home.tree(), home.tree(depth=3)

    assert "memory/" in shallow and "memory/2026-05-08.md" not in shallow
    assert "memory/topics/boat.md" in deep
    assert home.tree("memory", depth=2) == tuple(
        path for path in deep if path.startswith("memory/") and path != "memory/"
    )
    for depth, said in ((0, "from 1 to 10"), (11, "from 1 to 10"), (-1, "0 or more")):
        with pytest.raises(BadArguments, match=said):
            home.tree(depth=depth)


def test_all_files_are_listed_and_nothing_hidden_is_among_them(home: Home) -> None:
    (Path(home.name) / ".anima").mkdir(exist_ok=True)
    (Path(home.name) / ".anima" / "key").write_text("secret", encoding="utf-8")
    paths = [entry.path for entry in home.list_all()]

    assert paths == sorted(paths)
    assert "bank/entities/ana.md" in paths
    assert not any(part.startswith(".") for path in paths for part in path.split("/"))


def test_today_is_the_users_day(example: Callable[[str], Path]) -> None:
    folder = example("anima")
    late = datetime(2026, 5, 9, 3, 0, tzinfo=UTC)  # still the evening of the 8th in Bogota

    with Home.open(folder, clock=lambda: late, settings={"timezone": "America/Bogota"}) as home:
        today = home.today()
        assert today is not None
        assert today.path.text == "memory/2026-05-08.md"
    with Home.open(folder, clock=lambda: late, settings={"timezone": "UTC"}) as home:
        assert home.today() is None


def test_the_parts_of_a_listing_can_be_read(home: Home) -> None:
    for entry in home.list_all():
        if entry.path.endswith(".md"):
            assert home.read(entry.path).path.text == entry.path


# -- seeding and importing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "lacking"), [("openclaw", "MEMORY.md"), ("carapace", "memory/CORE.md"), ("ironclaw", "SOUL.md")]
)
def test_seeding_writes_only_what_a_dialect_knows_and_the_home_lacks(
    example: Callable[[str], Path], clock: Clock, dialect: str, lacking: str
) -> None:
    folder = example(dialect)
    (folder / lacking).unlink()
    before = bytes_of(folder)
    with Home.open(folder, clock=clock) as home:
        made = home.seed(name="Aria")
        assert home.seed(name="Aria") == ()

    after = bytes_of(folder)
    assert lacking in made
    assert {name: after[name] for name in before} == before
    assert not (folder / "BOOTSTRAP.md").exists() or "BOOTSTRAP.md" in before


def test_an_import_copies_documents_overwrites_none_and_says_what_it_left_out(tmp_path: Path) -> None:
    source = tmp_path / "vault"
    (source / "notes" / "deep").mkdir(parents=True)
    (source / "sessions").mkdir()
    files = {
        "notes/idea.md": b"# Idea\r\n",
        "notes/deep/more.md": b"more",
        "SOUL.md": b"not this one",
        "picture.png": b"\x89PNG",
        "latin.md": b"na\xefve",
        "sessions/x.md": b"a transcript",
        "anima.toml": b"dialect = 'nexo'",
    }
    for name, raw in files.items():
        (source / name).write_bytes(raw)
    (source / "link.md").symlink_to("/etc/passwd")

    with Home.create(tmp_path / "aria", name="Aria") as home:
        soul = home.read("SOUL.md").text
        done = home.import_directory(source, mine=True)
        assert (set(done.copied), done.present) == ({"notes/idea.md", "notes/deep/more.md"}, ())
        assert done.differs == ("SOUL.md",)
        assert {path for path, why in done.left_out if why} == {
            "picture.png",
            "latin.md",
            "sessions/x.md",
            "anima.toml",
            "link.md",
        }
        assert home.read("notes/idea.md").text == "# Idea\r\n"
        assert home.read("SOUL.md").text == soul
        assert not home.exists("link.md")
        assert stat.S_IMODE((tmp_path / "aria" / "notes" / "idea.md").stat().st_mode) == 0o600
        again = home.import_directory(source, mine=True)
        assert (again.copied, set(again.present)) == ((), {"notes/idea.md", "notes/deep/more.md"})


def test_a_home_does_not_import_itself_nor_what_is_not_there(tmp_path: Path) -> None:
    with Home.create(tmp_path / "aria") as home:
        with pytest.raises(BadArguments, match="this home itself"):
            home.import_directory(tmp_path / "aria", mine=True)
        with pytest.raises(NotFound, match="no such file or folder"):
            home.import_directory(tmp_path / "nope", mine=True)


def test_only_a_missing_guide_is_worth_a_warning(tmp_path: Path) -> None:
    with Home.create(tmp_path / "aria") as home:
        assert home.upkeep.validate() == ()
        (tmp_path / "aria" / "AGENTS.md").unlink()
        assert home.upkeep.validate() == ("AGENTS.md is missing; the agent works, but has no guide",)


def test_the_owner_is_told_where_the_avatar_is_but_never_an_absolute_path(tmp_path: Path) -> None:
    with Home.create(tmp_path / "aria", name="Aria") as home:
        for value in ("/etc/passwd", "../outside.png", str(tmp_path / "a.png"), "missing.png"):
            (tmp_path / "aria" / "IDENTITY.md").write_text(f"- Name: Aria\n- Avatar: {value}\n", encoding="utf-8")
            avatar = home.identity.avatar()
            assert avatar.reason
            assert str(tmp_path) not in repr(avatar)
            assert "/etc" not in repr(avatar)


# -- looking back -------------------------------------------------------------------------------------------------------


def test_nobody_is_named_for_a_line_with_nothing_on_it(tmp_path: Path) -> None:
    with Home.create(tmp_path / "home", name="Aria") as home:
        first, blank = home.past.why("MEMORY.md", 1), home.past.why("MEMORY.md", 2)

    assert first.sentence.startswith("written by you on")
    assert (blank.text, blank.sentence) == ("", "nothing stands on it, so nobody is noted for it")


def test_what_cannot_be_taken_back_is_named_for_what_it_is(tmp_path: Path) -> None:
    with Home.create(tmp_path / "home", name="Aria") as home:
        with pytest.raises(NoSuchRevision, match="there is no change 9999 to take back"):
            home.past.undo(change="9999")
        with pytest.raises(NoSuchRevision, match="there is no change of session 22a7449d to take back"):
            home.past.undo(session="22a7449d")


# -- what became of a change --------------------------------------------------------------------------------------------


def test_a_long_text_that_grows_is_cut_or_changes_has_the_digest_of_all_of_it() -> None:
    long = "".join(f"- [14:30] reading {n} é\n" for n in range(4_000))
    texts = [
        long,
        f"{long}- one more\n",
        f"{long}- one more\n- and one\n",
        long,
        f"x{long[1:]}",
        long[:-9],
        "short",
        long,
    ]

    assert [digest_of(text) for text in texts] == [hashlib.sha256(text.encode()).hexdigest() for text in texts]


def test_every_written_receipt_has_the_digest_of_the_document_as_it_then_stands(tmp_path: Path) -> None:
    with Home.create(tmp_path / "home", name="Aria") as home:
        for once in (
            home.note,
            home.remember,
            lambda text: home.append("x.md", text),
            lambda text: home.write("x.md", text),
        ):
            for text in ("Ana likes green tea", "The bank opens at nine"):
                receipt = once(text)
                assert receipt.digest == home.read(receipt.path).digest
        assert home.write("x.md", "The bank opens at nine").digest == home.read("x.md").digest  # nothing changes
        assert home.move("x.md", "y.md").digest == home.read("y.md").digest
        read = home.note("Luis called")
        home.note("and called again")
        with pytest.raises(StaleWrite):
            home.write(read.path, "all anew", base=read.digest)


def test_every_status_of_a_receipt_is_named_in_its_description() -> None:
    assert all(status in (Receipt.__doc__ or "") for status in get_args(Status))


def test_a_document_beneath_a_document_is_a_bad_path(tmp_path: Path) -> None:
    with Home.create(tmp_path / "home", name="Aria") as home, pytest.raises(BadPath, match="behind a link or a file"):
        home.write("MEMORY.md/x.md", "x")


def test_a_watcher_that_raises_does_not_make_a_done_write_fail(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[tuple[DocPath, ...]] = []
    with Home.create(tmp_path / "home", name="Aria") as home:
        stop = home.past.tell(lambda paths: stop() or 1 / 0)  # type: ignore[func-returns-value]
        home.past.tell(told.append)
        assert home.remember("Ana likes green tea").status == "written"
    assert told and "ZeroDivisionError" in caplog.text


# -- closing ------------------------------------------------------------------------------------------------------------


def test_closing_a_home_ends_its_open_sessions_as_closing_each_would(tmp_path: Path) -> None:
    homes = [Home.create(tmp_path / name, name="Aria") for name in ("one", "two")]
    said = "Remember that my dentist is Dr Rossi, and that I prefer the morning for appointments."
    for home, ends_first in zip(homes, (True, False), strict=True):
        session = home.session(scope="main")
        session.log("user", said)
        if ends_first:
            session.close()
        home.close()
        session.close()
    texts = []
    for home in homes:
        with Home.open(home.name) as again:
            log = again.today()
            assert log is not None and "Rossi" in log.text and all(row.closed for row in again.sessions.list())
            texts.append(re.sub(r"\d\d:\d\d|[0-9a-f]{8}\S*", "", log.text))
    assert texts[0] == texts[1]


def test_what_hinders_a_home_from_closing_is_said_as_it_is_and_it_is_closed_all_the_same(tmp_path: Path) -> None:
    home = Home.create(f"file:{tmp_path}/home.sqlite", name="Aria")
    home.remember("The walnut tree was planted in 1999.")
    (tmp_path / "home.sqlite").rename(tmp_path / "elsewhere.sqlite")
    with pytest.raises(Damaged, match="was taken away"):
        home.close()
    with pytest.raises(BadArguments, match="this home was closed"):
        home.identity.resolved()


def test_whoever_works_in_a_home_that_another_thread_closes_is_told_so(tmp_path: Path) -> None:
    Home.create(tmp_path / "home", name="Aria").close()
    found = Counter[str]()
    for turn in range(30):
        home, began = Home.open(tmp_path / "home"), threading.Event()

        def work(does: Callable[[int], object], began: threading.Event = began) -> None:
            try:
                for n in range(1_000):
                    does(n)
                    began.set()
            except Exception as error:
                found[f"{type(error).__name__}: {error}".partition("\n")[0]] += 1

        tasks: tuple[Callable[[int], object], ...] = (
            lambda n, home=home, turn=turn: home.note(f"walnut {turn} {n}"),  # type: ignore[misc]
            lambda n, home=home: (home.read("MEMORY.md"), home.list(), home.search("tea", scope="main")),  # type: ignore[misc]
        )
        threads = [threading.Thread(target=work, args=(each,)) for each in tasks]
        for thread in threads:
            thread.start()
        began.wait(120)
        home.close()
        for thread in threads:
            thread.join()
    assert set(found) == {"BadArguments: this home was closed"}
    with Home.open(tmp_path / "home") as home:
        assert home.past.audit().ok


@pytest.mark.parametrize("path", ["a\0b", "a\ud800b", "a" * 300, "file:a\0b"])
def test_a_path_that_no_system_takes_is_no_place_for_a_home(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for does in (Home.create, Home.open, anima.doctor, anima.verify_archive):
        with pytest.raises((Damaged, NoSuchHome, NotFound, Refused)) as error:
            does(path)
        str(error.value).encode()
    assert list(tmp_path.iterdir()) == []
