"""What writing needs from a store, whatever it keeps its documents in.

A store has three parts bound to one home: `documents` (read, exists, list), `hand` (look, stage, do, and what follows a crash)
and `machine` (the lock, logs, small files of our own). Bind the contract by a `parts` fixture; `again()` opens
the same home a second time, as another process would.
"""

from __future__ import annotations

import threading
from typing import Protocol

import pytest

from anima.errors import HomeBusy, NoSuchDocument, Refused, StaleWrite
from anima.ledger import Edit
from anima.model import Actor, Answer, Change, DocPath, Kind, Origin, Verdict
from anima.store import Batch
from anima.store.batch import Planned
from anima.store.folder import Folder
from anima.store.place import FolderStore
from anima.store.private import STAGE, Machine

ASK = Verdict(answer=Answer.ASK, rule="test", reason="somebody must be asked")
DENY = Verdict(answer=Answer.DENY, rule="test", reason="no")
NOTE, OTHER, DEEP = DocPath.parse("note.md"), DocPath.parse("other.md"), DocPath.parse("a/b/c.md")


class Parts(Protocol):
    documents: Folder
    hand: FolderStore
    machine: Machine

    def again(self) -> Parts: ...


def write(parts: Parts, path: DocPath, text: str) -> None:
    parts.hand.do([written(parts, path, text)])


def written(parts: Parts, path: DocPath, text: str) -> Planned:
    found = parts.hand.look(path)
    edit = Edit(path=found.actual, kind=Kind.WRITE, temp=parts.hand.stage(path, found.mode, text))
    return Planned(edit, ((path, found),))


def addition(parts: Parts, path: DocPath, text: str) -> Planned:
    found = parts.hand.look(path)
    return Planned(Edit(path=found.actual, kind=Kind.APPEND), ((path, found),), (found.gap + text).encode())


def removal(parts: Parts, path: DocPath) -> Planned:
    found = parts.hand.look(path)
    return Planned(Edit(path=found.actual, kind=Kind.DELETE), ((path, found),))


def add(parts: Parts, path: DocPath, text: str) -> None:
    parts.hand.do([addition(parts, path, text)])


def text_of(parts: Parts, path: DocPath) -> str | None:
    try:
        return parts.documents.read(path).text
    except NoSuchDocument:
        return None


class StoreContract:
    """Every store passes all of this."""

    # -- documents ------------------------------------------------------------------------------------------------------

    def test_what_was_written_is_read_back_to_the_byte(self, parts: Parts) -> None:
        text = "\ufeff# Título 🌿\r\n\tline\n\nno end"
        write(parts, NOTE, text)
        assert parts.documents.read(NOTE).text == text
        assert parts.again().documents.read(NOTE).text == text

    def test_what_is_not_there_is_said_so(self, parts: Parts) -> None:
        assert not parts.documents.exists(NOTE)
        with pytest.raises(NoSuchDocument):
            parts.documents.read(NOTE)

    def test_another_case_or_unicode_form_is_the_same_document(self, parts: Parts) -> None:
        write(parts, DocPath.parse("Café/Note.md"), "one\n")
        write(parts, DocPath.parse("cafe\u0301/NOTE.md"), "two\n")
        assert parts.documents.read(DocPath.parse("Café/Note.md")).text == "two\n"
        assert [entry.path for entry in parts.documents.list_all()] == ["Café/Note.md"]

    def test_documents_are_listed_with_folders_first(self, parts: Parts) -> None:
        for path in (NOTE, DEEP, OTHER):
            write(parts, path, "x\n")
        assert [(e.path, e.is_folder) for e in parts.documents.list()] == [
            ("a", True),
            ("note.md", False),
            ("other.md", False),
        ]
        assert [entry.path for entry in parts.documents.list_all()] == ["a/b/c.md", "note.md", "other.md"]

    # -- nothing without a verdict --------------------------------------------------------------------------------------

    @pytest.mark.parametrize("verdict", [ASK, DENY])
    def test_nothing_is_carried_out_without_an_allowing_verdict(self, parts: Parts, verdict: Verdict) -> None:
        write(parts, NOTE, "old\n")
        for path, kind in ((OTHER, Kind.WRITE), (NOTE, Kind.WRITE), (NOTE, Kind.APPEND), (NOTE, Kind.DELETE)):
            change = Change(path=path, kind=kind, text="new\n", actor=Actor.OWNER, origin=Origin.OWNER)
            with pytest.raises(Refused):
                parts.hand.write(Batch(changes=(change,), verdict=verdict))
        with pytest.raises(Refused):
            parts.hand.bring(OTHER, [b"new"], verdict, mode=0o600)
        assert text_of(parts, NOTE) == "old\n"
        assert not parts.documents.exists(OTHER)

    # -- carrying out ---------------------------------------------------------------------------------------------------

    def test_a_look_tells_what_stands_there(self, parts: Parts) -> None:
        assert parts.hand.look(NOTE).text is None
        assert parts.hand.look(NOTE).size == 0
        write(parts, NOTE, "é\n")
        assert (parts.hand.look(NOTE).text, parts.hand.look(NOTE).size) == ("é\n", 3)

    def test_a_staged_text_is_not_seen_before_it_is_carried_out(self, parts: Parts) -> None:
        write(parts, NOTE, "old\n")
        step = written(parts, NOTE, "new\n")
        assert text_of(parts, NOTE) == "old\n"
        parts.hand.do([step])
        assert text_of(parts, NOTE) == "new\n"

    def test_several_steps_are_carried_out_together(self, parts: Parts) -> None:
        write(parts, NOTE, "old\n")
        write(parts, OTHER, "gone soon\n")
        parts.hand.do(
            [written(parts, DEEP, "deep\n"), written(parts, NOTE, "new\n"), removal(parts, OTHER)],
        )
        assert [text_of(parts, path) for path in (DEEP, NOTE, OTHER)] == ["deep\n", "new\n", None]

    def test_a_stale_write_is_refused_and_changes_nothing(self, parts: Parts) -> None:
        write(parts, NOTE, "old\n")
        write(parts, OTHER, "old\n")
        steps, other = [written(parts, NOTE, "ours\n"), written(parts, OTHER, "ours\n")], parts.again()
        write(other, OTHER, "theirs\n")
        with pytest.raises(StaleWrite) as caught:
            parts.hand.do(steps)
        assert caught.value.theirs == "theirs\n"
        assert (text_of(parts, NOTE), text_of(parts, OTHER)) == ("old\n", "theirs\n")

    def test_what_somebody_made_meanwhile_is_not_written_over(self, parts: Parts) -> None:
        step = written(parts, NOTE, "ours\n")
        write(parts.again(), NOTE, "theirs\n")
        with pytest.raises(StaleWrite):
            parts.hand.do([step])
        assert text_of(parts, NOTE) == "theirs\n"

    def test_what_somebody_changed_meanwhile_is_not_removed(self, parts: Parts) -> None:
        write(parts, NOTE, "old\n")
        step = removal(parts, NOTE)
        write(parts.again(), NOTE, "theirs\n")
        with pytest.raises(StaleWrite):
            parts.hand.do([step])
        assert text_of(parts, NOTE) == "theirs\n"

    def test_an_addition_goes_to_the_end_and_begins_a_line(self, parts: Parts) -> None:
        write(parts, NOTE, "- no line end")
        add(parts, NOTE, "- one\n")
        add(parts.again(), NOTE, "- two\n")
        assert text_of(parts, NOTE) == "- no line end\n- one\n- two\n"

    def test_a_removed_document_can_be_made_again(self, parts: Parts) -> None:
        write(parts, DEEP, "one\n")
        parts.hand.do([removal(parts, DEEP)])
        assert not parts.documents.exists(DEEP)
        write(parts, DEEP, "two\n")
        assert text_of(parts.again(), DEEP) == "two\n"

    # -- after a crash --------------------------------------------------------------------------------------------------

    def staged(self, parts: Parts, path: DocPath, text: str) -> str:
        """A text that was staged by somebody who is gone."""
        name = parts.hand.stage(path, 0o600, text)
        parts.machine.sync_folder(STAGE)
        return name

    def test_a_staged_text_outlives_its_process_and_can_be_put_in_place(self, parts: Parts) -> None:
        write(parts, NOTE, "old\n")
        name = self.staged(parts, NOTE, "new\n")
        after = parts.again()
        assert after.machine.staged_bytes(name) == b"new\n"
        after.hand.put(NOTE, "note.md", name)
        assert text_of(after, NOTE) == "new\n"
        assert after.machine.staged_bytes(name) is None

    def test_a_torn_append_is_cut_back_to_the_byte(self, parts: Parts) -> None:
        write(parts, NOTE, "- whole\n")
        add(parts, NOTE, "- half of a li")
        after = parts.again()
        assert after.hand.raw(NOTE) == b"- whole\n- half of a li"
        after.hand.cut_back(NOTE, len(b"- whole\n"))
        assert text_of(after, NOTE) == "- whole\n"
        after.hand.cut_back(NOTE, 1_000)
        assert text_of(after, NOTE) == "- whole\n"

    def test_what_stands_and_what_is_gone_can_be_confirmed(self, parts: Parts) -> None:
        write(parts, DEEP, "x\n")
        for path in (DEEP, NOTE):
            parts.hand.confirm(path)

    def test_staged_texts_that_nobody_needs_are_swept(self, parts: Parts) -> None:
        names = [self.staged(parts, NOTE, "x"), self.staged(parts, OTHER, "y")]
        parts.again().machine.sweep()
        assert [parts.machine.staged_bytes(name) for name in names] == [None, None]
        parts.machine.unstage(names[0])  # which is gone already

    @pytest.mark.parametrize("name", ["", "key", "note.md", "../x", "/etc/passwd", ".anima/key", ".anima/stage/../key"])
    def test_only_names_the_store_gave_are_staged_texts(self, parts: Parts, name: str) -> None:
        write(parts, NOTE, "x\n")
        parts.machine.put("key", b"secret")
        assert parts.machine.staged_bytes(name) is None

    # -- the lock -------------------------------------------------------------------------------------------------------

    def test_one_holds_the_lock_and_the_other_is_told_who(self, parts: Parts) -> None:
        other = parts.again()
        with parts.machine.lock.hold():
            with pytest.raises(HomeBusy) as caught, other.machine.lock.hold(patience=0.01):
                raise AssertionError("two hold one lock")
            assert "process" in caught.value.holder
        with other.machine.lock.hold(patience=0.01):
            pass

    def test_the_lock_can_be_taken_again_by_its_holder(self, parts: Parts) -> None:
        lock, other = parts.machine.lock, parts.again().machine.lock
        with lock.hold():
            with lock.hold():
                pass
            assert other.holder() is not None
        assert other.holder() is None
        with other.hold(patience=0.01):
            pass

    def test_an_error_lets_the_lock_go(self, parts: Parts) -> None:
        with pytest.raises(ZeroDivisionError), parts.machine.lock.hold():
            _ = 1 / 0
        with parts.again().machine.lock.hold(patience=0.01):
            pass

    def test_threads_take_turns(self, parts: Parts) -> None:
        inside, most, mutex = 0, 0, threading.Lock()

        def work() -> None:
            nonlocal inside, most
            for _ in range(20):
                with parts.machine.lock.hold():
                    with mutex:
                        inside += 1
                        most = max(most, inside)
                    with mutex:
                        inside -= 1

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert most == 1

    # -- logs -----------------------------------------------------------------------------------------------------------

    def test_a_log_gives_back_what_was_added(self, parts: Parts) -> None:
        log = parts.machine.log("ledger.jsonl")
        log.append(b"one\n", sync=True)
        log.append(b"two\n", sync=False)
        assert (log.size(), log.read(0), log.read(4), log.read(1, 3), log.read(6, 100), log.read(50)) == (
            8,
            b"one\ntwo\n",
            b"two\n",
            b"ne",
            b"o\n",
            b"",
        )

    def test_two_see_one_log(self, parts: Parts) -> None:
        one, two = parts.machine.log("ledger.jsonl"), parts.again().machine.log("ledger.jsonl")
        one.append(b"from one\n", sync=True)
        two.append(b"from two\n", sync=True)
        assert one.read(0) == two.read(0) == b"from one\nfrom two\n"
        two.truncate(9)
        one.append(b"after\n", sync=True)
        assert two.read(0) == b"from one\nafter\n"

    # -- small files ----------------------------------------------------------------------------------------------------

    def test_small_files_are_put_got_listed_and_removed(self, parts: Parts) -> None:
        machine = parts.machine
        assert machine.get("pending/p1.json") is None
        machine.put("pending/p1.json", b"one")
        machine.put("pending/p1.json", b"two")
        machine.put("pending/p2.json", b"")
        assert parts.again().machine.get("pending/p1.json") == b"two"
        assert sorted(machine.names("pending")) == ["p1.json", "p2.json"]
        assert machine.remove("pending/p1.json")
        assert not machine.remove("pending/p1.json")
        assert machine.names("pending") == ["p2.json"]

    def test_what_is_put_only_when_new_stays_as_it_is(self, parts: Parts) -> None:
        parts.machine.put("key", b"first", only_new=True)
        parts.machine.put("key", b"second", only_new=True)
        assert parts.machine.get("key") == b"first"

    def test_a_home_has_one_key(self, parts: Parts) -> None:
        keys: list[bytes] = []
        threads = [threading.Thread(target=lambda: keys.append(parts.again().machine.key())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(keys) == 4
        assert len(set(keys)) == 1
        assert len(keys[0]) == 48

    def test_small_files_are_no_documents(self, parts: Parts) -> None:
        parts.machine.put("pending/p1.json", b"x")
        parts.machine.key()
        assert list(parts.documents.list_all()) == []
