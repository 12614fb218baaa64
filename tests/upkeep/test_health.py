"""What a look at a home says: damage first, then advice, each with what to do."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import anima
from anima import Home, Remark


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Home.create(tmp_path / "aria", name="Aria").close()
    return tmp_path / "aria"


def remarks(root: Path, **settings: object) -> list[Remark]:
    with Home.open(root, settings=settings) as home:
        return home.upkeep.doctor()


def said(root: Path, about: str) -> list[tuple[str, str]]:
    return [(remark.level, remark.message) for remark in remarks(root) if remark.about == about]


def put(root: Path, path: str, text: str | bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    file.chmod(0o600)


def test_a_new_home_is_well(root: Path) -> None:
    assert {remark.level for remark in remarks(root)} == {"fine"}


def test_looking_changes_nothing(root: Path) -> None:
    before = sorted((str(path), path.stat().st_mtime_ns) for path in root.rglob("*"))
    remarks(root)

    assert sorted((str(path), path.stat().st_mtime_ns) for path in root.rglob("*")) == before


def test_what_others_can_read_is_said_with_the_command_that_mends_it(root: Path) -> None:
    root.chmod(0o755)
    (root / "SOUL.md").chmod(0o644)
    found = [remark for remark in remarks(root) if remark.about == "modes"]

    assert [remark.level for remark in found] == ["advice", "advice"]
    assert "mode 0755" in found[0].message and found[0].do == f"chmod 700 {root}"
    assert found[1].message == "1 file can be read by others: SOUL.md."


def test_a_path_with_blanks_is_quoted_in_the_command(tmp_path: Path) -> None:
    Home.create(tmp_path / "my aria; rm x").close()
    (tmp_path / "my aria; rm x").chmod(0o755)

    assert remarks(tmp_path / "my aria; rm x")[0].do == f"chmod 700 '{tmp_path}/my aria; rm x'"


@pytest.mark.parametrize("path", ["SOUL.md", "memory/2026-05-08.md", "notes/deep/x.md", "knowledge/wood.md", "USER.md"])
def test_a_file_that_is_not_utf_8_or_too_large_is_damage_wherever_it_stands(root: Path, path: str) -> None:
    put(root, path, b"caf\xe9")
    assert said(root, path) == [("damage", f"{path}: it is not UTF-8 text (byte 4).")]

    with (root / path).open("wb") as file:
        file.truncate(50 * 2**20)
    assert [(level, "52,428,800 bytes" in message) for level, message in said(root, path)] == [("damage", True)]


def test_a_missing_file_is_advice(root: Path) -> None:
    (root / "USER.md").unlink()

    assert said(root, "USER.md") == [("advice", "USER.md is missing; the prompt says so in its place.")]


def test_a_folder_in_the_place_of_a_file_is_said_once(root: Path) -> None:
    (root / "TOOLS.md").unlink()
    (root / "TOOLS.md").mkdir(mode=0o700)
    put(root, "TOOLS.md/x.md", "x")

    assert "damage" not in [remark.level for remark in remarks(root)]


def test_a_file_over_its_budget_is_advice_and_says_how_much_is_shown(root: Path) -> None:
    put(root, "SOUL.md", "x\n" * 7000)

    assert said(root, "SOUL.md") == [
        ("advice", "SOUL.md has 14,000 characters; the prompt shows 12,000 and says what it leaves out.")
    ]


def test_a_file_that_does_not_fit_into_the_prompt_is_advice(root: Path) -> None:
    found = [remark for remark in remarks(root, **{"prompt.total_chars": 3000}) if "does not fit" in remark.message]

    assert found
    assert {remark.level for remark in found} == {"advice"}


def test_hidden_characters_are_said_with_their_line(root: Path) -> None:
    put(root, "MEMORY.md", "# Memory\n\n- Ana\u200b\u200b\u200b sails\u202e.\n")

    [(level, message)] = said(root, "MEMORY.md")
    assert level == "advice"
    assert message.startswith("MEMORY.md line 3: ")
    assert message.isprintable()


def test_a_share_mark_that_shares_nothing_is_said(root: Path) -> None:
    put(root, "MEMORY.md", "## A <!-- share: grp -->\nx\n## How to share <!-- a note -->\n## B <!-- share: group -->\n")

    assert said(root, "MEMORY.md") == [
        ("advice", "MEMORY.md: a share mark names no known scope, so it shares nothing.")
    ]


def test_a_private_mark_that_stands_beside_its_heading_is_said(root: Path) -> None:
    put(root, "MEMORY.md", "## Health <!-- private -->\nx\n## Money\n<!-- private -->\nsecret\n")

    assert said(root, "MEMORY.md") == [
        ("advice", "MEMORY.md: a private mark that stands on no heading hides its own line alone.")
    ]


def test_marks_in_code_are_no_matter(root: Path) -> None:
    put(root, "notes/x.md", "```\n## A <!-- share: grp -->\n## B <!-- private -->\n```\n")

    assert said(root, "notes/x.md") == []


def test_two_names_that_fold_alike_are_damage(root: Path) -> None:
    put(root, "memory.md", "the other")
    put(root, "notes/e\u0301te\u0301.md", "one")
    put(root, "notes/été.md", "two")
    found = [remark for remark in remarks(root) if "the same name" in remark.message]

    assert {remark.level for remark in found} == {"damage"}
    assert {remark.about for remark in found} == {"memory.md", "notes/été.md"}
    assert found[0].message == "MEMORY.md and memory.md are the same name to us; only the first is read."


def test_links_pipes_and_names_we_cannot_use_are_left_alone_and_said(root: Path) -> None:
    (root / "link.md").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe.md")
    (root / "a\nb.md").touch(mode=0o600)
    (root / "memory" / "con.md").touch(mode=0o600)
    found = {remark.about: remark for remark in remarks(root) if "left alone" in remark.message}

    assert set(found) == {"link.md", "pipe.md", r"a\u000ab.md", "memory/con.md"}
    assert all(remark.level == "advice" and remark.message.isprintable() for remark in found.values())


def test_a_broken_skill_is_said_and_a_whole_one_is_not(root: Path) -> None:
    put(root, "skills/good/SKILL.md", "---\nname: good\ndescription: does good\n---\n")
    put(root, "skills/broken/SKILL.md", "---\nname: [\n---\n")
    put(root, "skills/other/SKILL.md", "---\nname: another\ndescription: x\n---\n")
    put(root, "skills/_drafts/SKILL.md", "no front matter")
    found = [remark.about for remark in remarks(root) if remark.message.startswith("Skill left out")]

    assert found == ["skills/broken/SKILL.md", "skills/other/SKILL.md"]


def test_what_an_untrusted_file_asks_for_is_said(tmp_path: Path) -> None:
    put(tmp_path, "anima.toml", "[gate]\npreset = 'open'\n")

    [remark] = [remark for remark in remarks(tmp_path) if remark.about == "anima.toml"]
    assert (remark.level, remark.do) == ("advice", "anima trust-home, if you know who wrote that file")
    assert "gate.preset is not used" in remark.message


def test_damage_is_said_before_advice_and_advice_before_what_is_fine(root: Path) -> None:
    put(root, "USER.md", b"\xff")
    (root / "TOOLS.md").unlink()
    levels = [remark.level for remark in remarks(root)]

    assert levels == sorted(levels, key=["damage", "advice", "fine"].index)
    assert {"damage", "advice", "fine"} == set(levels)


@pytest.fixture
def ordinary() -> Iterator[Path]:
    """A home of somebody who may not read everything; root becomes that somebody for a while."""
    user = 65534 if os.geteuid() == 0 else os.geteuid()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        Home.create(f"{other}/aria").close()
        anima.doctor(f"{other}/aria", repair=True)  # imports what that somebody may not read
        os.chown(folder, user, -1)
        os.environ["ANIMA_CONFIG"] = f"{folder}/config"
        os.seteuid(user)
        try:
            Home.create(f"{folder}/aria").close()
            yield Path(folder, "aria")
        finally:
            os.seteuid(os.getuid())


def test_what_the_system_does_not_let_us_read_is_damage_with_its_mode(ordinary: Path) -> None:
    put(ordinary, "notes/x.md", "x")
    (ordinary / "notes").chmod(0)
    (ordinary / "SOUL.md").chmod(0)
    found = {remark.about: remark for remark in remarks(ordinary) if remark.level == "damage"}
    (ordinary / "notes").chmod(0o700)

    assert set(found) == {"notes", "SOUL.md"}
    assert "does not let us read it (mode 0000, owner" in found["SOUL.md"].message
    assert found["SOUL.md"].do == f"chmod u+rwX {ordinary}/SOUL.md"


def test_a_home_that_cannot_be_written_is_told_in_two_lines_and_mended(ordinary: Path) -> None:
    folders = [ordinary / top / name for top in (".anima", ".git") for name in ("", *os.listdir(ordinary / top))]
    shut = sorted(path for path in folders if path.is_dir())
    for folder in shut:
        folder.chmod(0o500)
    found = [remark for remark in anima.doctor(ordinary).found if remark.name == "unreadable"]

    assert [remark.about for remark in found] == [".anima", ".git"]
    assert ".git: the system does not let us write it (mode 0500" in found[1].message
    assert not [remark for remark in anima.doctor(ordinary, repair=True).left if remark.level == "damage"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in shut} == {0o700}


@pytest.mark.parametrize("name", ["ledger.jsonl", "lock"])
def test_machinery_that_can_be_read_and_not_written_is_told_as_that_and_mended(ordinary: Path, name: str) -> None:
    (ordinary / ".anima" / name).chmod(0o400)
    told = [remark.message for remark in anima.doctor(ordinary).found if remark.name == "unreadable"]

    assert len(told) == 1 and f".anima/{name}: the system does not let us write it (mode 0400" in told[0]
    assert not [remark for remark in anima.doctor(ordinary, repair=True).left if remark.level == "damage"]
    with Home.open(ordinary) as home:
        assert home.remember("Ana has a cat").status == "written"


@pytest.mark.parametrize("top", [".anima", ".git"])
def test_machinery_that_is_shut_all_the_way_down_is_mended_in_one_go(ordinary: Path, top: str) -> None:
    for path in sorted([ordinary / top, *(ordinary / top).rglob("*")], reverse=True):
        path.chmod(0)

    assert not [remark for remark in anima.doctor(ordinary, repair=True).left if remark.level == "damage"]
    with Home.open(ordinary) as home:
        assert home.write("notes/x.md", "x\n").revision is not None
