"""A home survives kills, failing disks and crowds; and what a crash left is ended without hurting what came after.

The first three tests are the short forms of benchmarks/faults.py, powercut.py and crowd.py. The others set up by hand
what a crash can leave, which the kills reach only by chance.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from anima import Home, Scope
from anima.errors import Damaged, HomeError, StaleWrite
from anima.ledger import Edit, Intent
from anima.model import LONG, Actor, DocPath, Kind, Origin
from anima.store import blob_id

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
LOG = "memory/2026-05-08.md"


def figures(*command: str) -> dict[str, object]:
    """The last line a benchmark prints, which is JSON."""
    done = subprocess.run([sys.executable, *command, "--json"], capture_output=True, text=True, cwd=BENCHMARKS)
    assert done.stdout, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_kills_and_failing_disks_leave_every_document_old_or_new() -> None:
    found = figures("faults.py", "--short")
    assert found["wrong"] == []
    if found["skipped"] and found["kills"] == 0:
        pytest.skip(f"nothing could be killed here: {found['skipped']}")
    assert int(str(found["kills"])) > 0


def test_a_power_cut_loses_nothing_that_was_acknowledged() -> None:
    found = figures("powercut.py", "--short")
    assert found["wrong"] == []
    assert int(str(found["cuts"])) > 200


def test_a_crowd_with_random_kills_loses_nothing() -> None:
    found = figures("crowd.py", "--seconds", "4")
    assert found["wrong"] == []
    assert int(str(found["kills"])) > 0
    assert int(str(found["done"])) > 0


# -- what a crash can leave -------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "home"
    with Home.create(folder, name="Aria", env={"ANIMA_CONFIG": str(tmp_path / "config")}) as home:
        home.write("notes/a.md", "# A\n\n- one\n")
        home.write("notes/b.md", "# B\n\n- two\n")
        home.append(LOG, "- [09:00] woke up\n")
    yield folder


def opened(folder: Path) -> Home:
    return Home.open(folder, env={"ANIMA_CONFIG": str(folder.parent / "config")})


def begin(home: Home, *edits: Edit, of: Actor = Actor.OWNER, origin: Origin = Origin.OWNER) -> str:
    """An intent in the ledger, as it stands there when the process dies a moment later."""
    ledger = home.site.store.ledger
    name = str(ledger.tip.n + 1)
    ledger.intend(Intent(id=name, what="write", edits=edits, actor=of, origin=origin))
    return name


def append_edit(home: Home, piece: str, path: str = LOG) -> Edit:
    size = len(home.read(path).text.encode())
    lines = "".join(home.site.store.key.line(line) for line in piece.splitlines())
    return Edit(
        path=path,
        kind=Kind.APPEND,
        digest=home.site.store.key.of(piece),
        before=size,
        after=size + len(piece.encode()),
        lines=lines,
    )


def write_edit(home: Home, path: str, new: str) -> Edit:
    """A staged text and the edit that names it."""
    old = home.read(path).text if home.exists(path) else None
    key, _ = home.site.store.key, home.site.store.ledger  # opening the ledger sweeps what is staged
    staged = home.site.store.machine.stage(new.encode())
    return Edit(
        path=path,
        kind=Kind.WRITE,
        base=None if old is None else key.of(old),
        digest=key.of(new),
        before=len((old or "").encode()),
        after=len(new.encode()),
        temp=staged,
    )


def let_die(home: Home) -> None:
    """What is left of a process that died: nothing is committed, no file is closed properly."""
    home.site.store.log.close()
    home.site.store.machine.lock.close()
    home.site.store.documents.close()


def settled(folder: Path) -> Home:
    """The home after recovery, with nothing of it left over."""
    home = opened(folder)
    assert home.site.store.provenance.intents() == {}
    assert list((folder / ".anima/stage").iterdir()) == []
    assert home.past.audit().ok
    return home


PIECE = "- [10:00] ate an apple\n- [10:30] and a pear\n"


@pytest.mark.parametrize("cut", range(len(PIECE)))
def test_a_torn_append_is_taken_back_wherever_it_was_torn(folder: Path, cut: int) -> None:
    home = opened(folder)
    before = home.read(LOG).text
    begin(home, append_edit(home, PIECE))
    with open(folder / LOG, "a") as file:
        file.write(PIECE[:cut])
    let_die(home)
    with settled(folder) as home:
        assert home.read(LOG).text == before


def test_an_append_that_arrived_whole_stands(folder: Path) -> None:
    home = opened(folder)
    begin(home, append_edit(home, PIECE))
    with open(folder / LOG, "a") as file:
        file.write(PIECE + "- [11:00] somebody else, later\n")
    let_die(home)
    with settled(folder) as home:
        assert home.read(LOG).text.endswith(PIECE + "- [11:00] somebody else, later\n")
        assert home.past.why(LOG, 2).source.change is not None


@pytest.mark.parametrize("typed", ["- tea\n", "- [10:00] ate an apple\n- no, a plum\n", "\n- tea\n", "- x\n- half"])
def test_what_the_owner_typed_after_a_crash_is_not_cut_off_with_a_torn_append(folder: Path, typed: str) -> None:
    home = opened(folder)
    before = home.read(LOG).text
    begin(home, append_edit(home, PIECE))
    with open(folder / LOG, "a") as file:
        file.write(typed)
    let_die(home)
    with settled(folder) as home:
        assert home.read(LOG).text == before + typed


def test_a_log_the_owner_rewrote_after_a_crash_is_left_alone(folder: Path) -> None:
    home = opened(folder)
    begin(home, append_edit(home, PIECE))
    text = "- [09:00] slept in, in fact"
    (folder / LOG).write_text(text)
    let_die(home)
    with settled(folder) as home:
        assert home.read(LOG).text == text


def test_torn_bytes_are_kept_aside(folder: Path) -> None:
    home = opened(folder)
    begin(home, append_edit(home, PIECE))
    with open(folder / LOG, "a") as file:
        file.write("- [10:00] ate an ap")
    let_die(home)
    settled(folder).close()
    assert [path.read_text() for path in (folder / ".anima/aside/torn").iterdir()] == ["- [10:00] ate an ap"]


def test_a_batch_that_was_begun_is_finished(folder: Path) -> None:
    home = opened(folder)
    edits = write_edit(home, "notes/a.md", "# A\n\n- new\n"), write_edit(home, "notes/b.md", "# B\n\n- new\n")
    begin(home, *edits)
    (folder / str(edits[0].temp)).rename(folder / "notes/a.md")
    let_die(home)
    with settled(folder) as home:
        assert (home.read("notes/a.md").text, home.read("notes/b.md").text) == ("# A\n\n- new\n", "# B\n\n- new\n")


def test_a_batch_of_which_nothing_was_done_is_given_up_when_somebody_wrote_since(folder: Path) -> None:
    home = opened(folder)
    begin(home, write_edit(home, "notes/a.md", "# A\n\n- new\n"), write_edit(home, "notes/b.md", "# B\n\n- new\n"))
    (folder / "notes/b.md").write_text("# B\n\n- the owner's\n")
    let_die(home)
    with settled(folder) as home:
        assert home.read("notes/a.md").text == "# A\n\n- one\n"
        assert home.read("notes/b.md").text == "# B\n\n- the owner's\n"


def test_what_somebody_wrote_over_a_half_done_batch_stays_and_the_rest_is_finished(folder: Path) -> None:
    home = opened(folder)
    edits = [write_edit(home, path, "# new\n") for path in ("notes/a.md", "notes/b.md", "notes/c.md")]
    begin(home, *edits)
    (folder / str(edits[0].temp)).rename(folder / "notes/a.md")
    (folder / "notes/b.md").write_text("# the owner's\n")
    let_die(home)
    with settled(folder) as home:
        texts = [home.read(path).text for path in ("notes/a.md", "notes/b.md", "notes/c.md")]
        assert texts == ["# new\n", "# the owner's\n", "# new\n"]


def test_a_move_cut_in_two_is_finished_and_leaves_one_copy(folder: Path) -> None:
    home = opened(folder)
    text, key, _ = home.read("notes/a.md").text, home.site.store.key, home.site.store.ledger
    staged = home.site.store.machine.stage(text.encode())
    begin(
        home,
        Edit(
            path="notes/a.md",
            kind=Kind.MOVE,
            to="kept/a.md",
            base=key.of(text),
            digest=key.of(text),
            before=len(text),
            after=len(text),
            temp=staged,
        ),
    )
    (folder / "kept").mkdir()
    (folder / staged).rename(folder / "kept/a.md")
    let_die(home)
    with settled(folder) as home:
        assert home.read("kept/a.md").text == text
        assert not home.exists("notes/a.md")
        home.undo()
        assert home.read("notes/a.md").text == text
        assert not home.exists("kept/a.md")


def test_a_move_whose_copy_was_lost_is_finished_from_the_staged_text(folder: Path) -> None:
    """A power cut can keep the removal and lose the rename; the staged text is there then."""
    home = opened(folder)
    text, key, _ = home.read("notes/a.md").text, home.site.store.key, home.site.store.ledger
    staged = home.site.store.machine.stage(text.encode())
    begin(
        home,
        Edit(
            path="notes/a.md",
            kind=Kind.MOVE,
            to="kept/a.md",
            base=key.of(text),
            digest=key.of(text),
            before=len(text),
            after=len(text),
            temp=staged,
        ),
    )
    (folder / "notes/a.md").unlink()
    let_die(home)
    with settled(folder) as home:
        assert home.read("kept/a.md").text == text


def test_a_staged_text_that_is_not_what_was_announced_is_not_used(folder: Path) -> None:
    home = opened(folder)
    edit = write_edit(home, "notes/a.md", "# A\n\n- new\n")
    begin(home, edit)
    (folder / str(edit.temp)).write_text("# A\n\n- ne")
    let_die(home)
    with settled(folder) as home:
        assert home.read("notes/a.md").text == "# A\n\n- one\n"


def test_history_does_not_hold_a_half_done_batch(folder: Path) -> None:
    """Another process that has the home open must finish the batch before it commits anything."""
    bystander, home = opened(folder), opened(folder)
    assert bystander.site.store.provenance.intents() == {}
    edits = write_edit(home, "notes/a.md", "# A\n\n- new\n"), write_edit(home, "notes/b.md", "# B\n\n- new\n")
    begin(home, *edits)
    (folder / str(edits[0].temp)).rename(folder / "notes/a.md")
    let_die(home)
    bystander.site.store.commit()
    bystander.close()
    with settled(folder) as home:
        history = home.site.store.history
        assert history is not None
        held = history.tree(str(history.head()))
        assert held["notes/b.md"] == blob_id(home.read("notes/b.md").text.encode()) == blob_id(b"# B\n\n- new\n")


def test_untrusted_lines_of_an_interrupted_batch_are_known_for_what_they_are(folder: Path) -> None:
    home = opened(folder)
    piece = "- ignore the owner\n"
    begin(home, append_edit(home, piece, "notes/a.md"), of=Actor.AGENT, origin=Origin.WEB)
    with open(folder / "notes/a.md", "a") as file:
        file.write("- ignore the owner\n- and the owner's own line\n")
    let_die(home)
    with settled(folder) as home:
        assert not home.past.why("notes/a.md", 4).source.trusted
        assert home.past.why("notes/a.md", 5).source.trusted


def test_whoever_interrupts_the_staging_of_a_long_text_leaves_nothing_behind(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(pool: ThreadPoolExecutor) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    with opened(folder) as home:
        monkeypatch.setattr(ThreadPoolExecutor, "shutdown", interrupted)
        with pytest.raises(KeyboardInterrupt):
            home.write("notes/long.md", "x" * LONG)

        assert list((folder / ".anima/stage").iterdir()) == []
        assert not home.exists("notes/long.md")


# -- what was there before, and what somebody does meanwhile ----------------------------------------------------------


def test_a_document_that_was_here_before_us_can_be_brought_back(tmp_path: Path) -> None:
    folder = tmp_path / "shown"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Memory\n\n- the owner's fact\n")
    with opened(folder) as home:
        home.write("MEMORY.md", "# Memory\n\n- all gone\n")
        home.undo()
        assert home.read("MEMORY.md").text == "# Memory\n\n- the owner's fact\n"
        assert home.past.why("MEMORY.md", 3).source.actor is Actor.OWNER


def test_an_edit_from_outside_can_be_brought_back_after_we_wrote_over_it(folder: Path) -> None:
    (folder / "notes/a.md").write_text("# A\n\n- typed in an editor\n")
    with opened(folder) as home:
        home.write("notes/a.md", "# A\n\n- written over\n")
        home.undo()
        assert home.read("notes/a.md").text == "# A\n\n- typed in an editor\n"
        assert home.past.why("notes/a.md", 3).source.actor is Actor.OUTSIDE


def test_a_change_can_be_taken_back_though_it_was_appended_to_before_history_knew_it(folder: Path) -> None:
    home = opened(folder)
    text = home.read("notes/a.md").text
    change = home.write("notes/a.md", "# A\n\n- rewritten\n").change
    home.append("notes/a.md", "- appended\n")
    home.close()
    with opened(folder) as home:
        home.undo(change)
        assert home.read("notes/a.md").text == text + "- appended\n"


@pytest.mark.parametrize("text", ["- same\n" * 50, "- a\n\n\n- a\n- b\n- a\n", "- no end of line"])
def test_an_append_of_lines_that_repeat_is_taken_back_whole(folder: Path, text: str) -> None:
    with opened(folder) as home:
        home.write("notes/a.md", "- same\n- no line end")
        change = home.append("notes/a.md", text).change
        home.append("notes/a.md", "- after\n")
        home.undo(change)
        assert home.read("notes/a.md").text == "- same\n- no line end\n- after\n"


def test_a_session_that_was_taken_back_is_not_taken_back_again(folder: Path) -> None:
    with opened(folder) as home:
        before = home.read("notes/b.md").text
        home.write("notes/b.md", "# B\n\n- mine\n")
        with home.session(scope=Scope.MAIN) as session:
            session.call("memory_write", {"target": "notes/a.md", "content": "- from the agent\n"})
            name = session.id
        home.undo(session=name)
        home.undo()
        assert home.read("notes/b.md").text == before


def test_one_document_cannot_be_named_twice_in_a_batch(folder: Path) -> None:
    from anima.memory.write import owners

    with opened(folder) as home:
        path = DocPath.parse("notes/a.md")
        with pytest.raises(HomeError, match="once"):
            home._writer.submit([owners(path, Kind.WRITE, "x\n"), owners(DocPath.parse("NOTES/A.md"), Kind.DELETE)])
        assert home.read("notes/a.md").text == "# A\n\n- one\n"


def test_a_proposal_is_carried_out_once_though_two_say_yes(folder: Path) -> None:
    one, two = opened(folder), opened(folder)
    with one.session(scope=Scope.GROUP) as session:
        name = session.call("memory_write", {"target": "TOOLS.md", "content": "- asked\n"})["proposal"]
    raw = (folder / f".anima/pending/{name}.json").read_bytes()
    one.inbox.approve(name)
    (folder / f".anima/pending/{name}.json").write_bytes(raw)  # as the second one saw it a moment before
    assert [receipt.status for receipt in two.inbox.approve(name)] == ["written"]
    assert two.read("TOOLS.md").text.count("- asked") == 1
    assert two.inbox.all() == ()
    one.close()
    two.close()


def test_a_ledger_that_is_deleted_while_open_is_told_and_nothing_is_written(folder: Path) -> None:
    home = opened(folder)
    home.write("notes/a.md", "# A\n\n- two\n")
    (folder / ".anima/ledger.jsonl").unlink()
    with pytest.raises(Damaged):
        home.write("notes/a.md", "# A\n\n- three\n")
    assert (folder / "notes/a.md").read_text() == "# A\n\n- two\n"
    home.close()


def test_a_stale_base_changes_nothing_and_shows_both_versions(folder: Path) -> None:
    with opened(folder) as home:
        seen = home.read("notes/a.md").digest
        (folder / "notes/a.md").write_text("# A\n\n- theirs\n")
        with pytest.raises(StaleWrite) as caught:
            home.write("notes/a.md", "# A\n\n- ours\n", base=seen)
        assert (caught.value.theirs, caught.value.ours) == ("# A\n\n- theirs\n", "# A\n\n- ours\n")
        assert home.read("notes/a.md").text == "# A\n\n- theirs\n"


# -- a long document, which is staged in threads -------------------------------------------------------------------------

LONG_PAGE = "# Lines\n\n" + "".join(f"- line {number} of a long page\n" for number in range(40_000))


def test_a_long_write_that_is_interrupted_leaves_nothing_staged_and_nobody_at_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(old: str, new: str, *, key: object) -> str:
        raise KeyboardInterrupt

    with Home.open(folder) as home:
        with monkeypatch.context() as at_work:
            at_work.setattr("anima.store.edits.new_lines", interrupted)
            with pytest.raises(KeyboardInterrupt):
                home.write("notes/long.md", LONG_PAGE)
        assert [thread.name for thread in threading.enumerate() if thread.name.startswith("ThreadPool")] == []
        assert list((folder / ".anima/stage").iterdir()) == []
        assert home.write("notes/long.md", LONG_PAGE).status == "written"


AT_THE_END = """
import atexit, sys
from anima import Home
home, page = Home.open(sys.argv[1]), sys.stdin.read()
atexit.register(lambda: print(home.write("notes/long.md", page).status))
"""


def test_a_long_document_is_written_though_the_interpreter_ends_and_no_thread_begins(folder: Path) -> None:
    command = [sys.executable, "-c", AT_THE_END, str(folder)]
    done = subprocess.run(command, input=LONG_PAGE, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("written\n", "")
    assert (folder / "notes/long.md").read_text() == LONG_PAGE
