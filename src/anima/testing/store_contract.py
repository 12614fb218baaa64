"""What every store promises, as tests: bind it by a subclass with a `home` fixture.

`home()` opens the same empty home once more each time it is called, as another process would:

    class TestMine(StoreContract):
        @pytest.fixture
        def home(self, tmp_path): ...
            return lambda: open_my_store(...)

Promise: public and independent of where a store keeps things. Not here: kills, torn writes and failing disks, which are
the folder's own affair.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anima.errors import (
    BadArguments,
    BadText,
    HomeBusy,
    NoSuchDocument,
    NoSuchRevision,
    NoSuchSession,
    Refused,
    StaleWrite,
)
from anima.model import MAX_BYTES, Actor, Answer, Change, DocPath, Kind, Origin, Verdict, digest_of
from anima.store import Batch, Store, Written

Opens = Callable[[], Store]
ALLOW = Verdict(answer=Answer.ALLOW, rule="test", reason="the test says so")
NOTE, OTHER, DEEP = DocPath.parse("note.md"), DocPath.parse("other.md"), DocPath.parse("a/b/c.md")


def change(path: DocPath, kind: Kind, text: str = "", **more: Any) -> Change:
    """A change by the owner's hand."""
    return Change(path=path, kind=kind, text=text, **{"actor": Actor.OWNER, "origin": Origin.OWNER, **more})


def put(store: Store, path: DocPath, text: str, **more: Any) -> Written:
    """Writes one document."""
    return store.write(Batch(changes=(change(path, Kind.WRITE, text, **more),), verdict=ALLOW))


def add(store: Store, path: DocPath, text: str, **more: Any) -> Written:
    """Appends to one document."""
    return store.write(Batch(changes=(change(path, Kind.APPEND, text, **more),), verdict=ALLOW))


def text_of(store: Store, path: DocPath) -> str | None:
    """A document's text; None where there is none."""
    try:
        return store.documents.read(path).text
    except NoSuchDocument:
        return None


class StoreContract:
    """Every store passes all of this."""

    # -- documents ------------------------------------------------------------------------------------------------------

    def test_what_was_written_is_read_back_to_the_byte(self, home: Opens) -> None:
        text = "\ufeff# Título 🌿\r\n\tline\n\nno end"
        written = put(home(), NOTE, text)
        assert text_of(home(), NOTE) == text
        assert written.digests == put(home(), NOTE, text).digests == (digest_of(text),)

    def test_the_digest_of_what_was_appended_to_is_that_of_all_of_it(self, home: Opens) -> None:
        for line in ("one", "two\n", "three"):
            assert add(home(), NOTE, line).digests == (digest_of(text_of(home(), NOTE)),)
        assert text_of(home(), NOTE) == "one\ntwo\nthree"

    def test_what_is_not_there_is_said_so(self, home: Opens) -> None:
        store = home()
        assert not store.documents.exists(NOTE)
        assert store.documents.actual(NOTE) is None
        assert store.documents.version("note.md") is None
        with pytest.raises(NoSuchDocument):
            store.documents.read(NOTE)
        with pytest.raises(NoSuchDocument):
            store.documents.raw(NOTE, most=10)

    def test_another_case_or_unicode_form_is_the_same_document(self, home: Opens) -> None:
        store = home()
        put(store, DocPath.parse("Café/Note.md"), "one\n")
        put(store, DocPath.parse("cafe\u0301/NOTE.md"), "two\n")
        assert text_of(store, DocPath.parse("Café/Note.md")) == "two\n"
        assert [entry.path for entry in store.documents.list_all()] == ["Café/Note.md"]

    def test_documents_are_listed_with_folders_first(self, home: Opens) -> None:
        store = home()
        for path in (NOTE, DEEP, OTHER):
            put(store, path, "x\n")
        listed = [(entry.path, entry.is_folder) for entry in store.documents.list()]
        assert listed == [("a", True), ("note.md", False), ("other.md", False)]
        assert [entry.path for entry in store.documents.list_all()] == ["a/b/c.md", "note.md", "other.md"]
        assert store.documents.names("a/b") == ("c.md",)

    def test_a_version_changes_with_the_text_and_only_then(self, home: Opens) -> None:
        store = home()
        put(store, NOTE, "one\n")
        put(store, OTHER, "x\n")
        first = store.documents.version("note.md")
        put(store, OTHER, "y\n")
        assert home().documents.version("note.md") == first is not None
        assert (home().documents.versions() or {"note.md": first})["note.md"] == first
        put(store, NOTE, "another length\n")
        assert store.documents.version("note.md") != first

    def test_a_file_that_is_no_document_is_brought_once(self, home: Opens) -> None:
        store, picture = home(), DocPath.parse("pictures/cat.png")
        assert store.bring(picture, [b"\x89P", b"NG"], ALLOW, mode=0o600)
        assert not store.bring(picture, [b"other"], ALLOW, mode=0o600)
        assert store.documents.raw(picture, most=100) == b"\x89PNG"
        with pytest.raises(BadText):
            store.documents.raw(picture, most=3)

    # -- a batch --------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("answer", [Answer.ASK, Answer.DENY])
    def test_nothing_is_written_without_an_allowing_verdict(self, home: Opens, answer: Answer) -> None:
        store, verdict = home(), Verdict(answer=answer, rule="r", reason="no")
        with pytest.raises(Refused):
            store.write(Batch(changes=(change(NOTE, Kind.WRITE, "x"),), verdict=verdict))
        with pytest.raises(Refused):
            store.bring(NOTE, [b"x"], verdict, mode=0o600)
        assert not store.documents.exists(NOTE)

    def test_a_batch_is_written_together(self, home: Opens) -> None:
        store = home()
        put(store, NOTE, "old\n")
        put(store, OTHER, "gone soon\n")
        changes = (
            change(DEEP, Kind.WRITE, "deep\n"),
            change(NOTE, Kind.WRITE, "new\n", base=digest_of("old\n")),
            change(OTHER, Kind.DELETE),
        )
        written = store.write(Batch(changes=changes, verdict=ALLOW))
        assert [text_of(home(), path) for path in (DEEP, NOTE, OTHER)] == ["deep\n", "new\n", None]
        assert written.digests == (digest_of("deep\n"), digest_of("new\n"), "")

    def test_one_stale_base_stops_the_whole_batch(self, home: Opens) -> None:
        store = home()
        put(store, NOTE, "old\n")
        put(store, OTHER, "theirs\n")
        changes = (
            change(NOTE, Kind.WRITE, "ours\n", base=digest_of("old\n")),
            change(OTHER, Kind.WRITE, "ours\n", base=digest_of("old\n")),
        )
        with pytest.raises(StaleWrite) as caught:
            store.write(Batch(changes=changes, verdict=ALLOW))
        assert (caught.value.theirs, caught.value.ours) == ("theirs\n", "ours\n")
        assert (text_of(store, NOTE), text_of(store, OTHER)) == ("old\n", "theirs\n")

    def test_a_document_that_must_not_be_there_is_not_written_over(self, home: Opens) -> None:
        put(home(), NOTE, "theirs\n")
        with pytest.raises(StaleWrite):
            put(home(), NOTE, "ours\n", base="")
        assert text_of(home(), NOTE) == "theirs\n"

    def test_an_append_begins_a_line_and_conflicts_with_nobody(self, home: Opens) -> None:
        one, two = home(), home()
        put(one, NOTE, "- no line end")
        assert add(one, NOTE, "- one\n").revision is None
        add(two, NOTE, "- two\n")
        assert text_of(one, NOTE) == "- no line end\n- one\n- two\n"

    def test_an_append_to_nothing_begins_with_its_opening(self, home: Opens) -> None:
        store = home()
        add(store, NOTE, "- one\n", opening="# Today\n\n")
        add(store, NOTE, "- two\n", opening="# Today\n\n")
        assert text_of(store, NOTE) == "# Today\n\n- one\n- two\n"

    def test_a_move_takes_the_text_along_and_covers_nothing(self, home: Opens) -> None:
        store = home()
        put(store, NOTE, "text\n")
        store.write(Batch(changes=(change(NOTE, Kind.MOVE, to=DEEP),), verdict=ALLOW))
        assert (text_of(store, NOTE), text_of(store, DEEP)) == (None, "text\n")
        put(store, OTHER, "mine\n")
        with pytest.raises(BadArguments):
            store.write(Batch(changes=(change(DEEP, Kind.MOVE, to=OTHER),), verdict=ALLOW))
        assert (text_of(store, DEEP), text_of(store, OTHER)) == ("text\n", "mine\n")

    @pytest.mark.parametrize("kind", [Kind.DELETE, Kind.MOVE])
    def test_what_is_not_there_can_neither_go_nor_move(self, home: Opens, kind: Kind) -> None:
        with pytest.raises(NoSuchDocument):
            home().write(Batch(changes=(change(NOTE, kind, to=DEEP),), verdict=ALLOW))

    def test_a_batch_that_changes_nothing_leaves_no_record(self, home: Opens) -> None:
        store = home()
        put(store, NOTE, "same\n")
        before = store.ledger.tip.n
        assert put(store, NOTE, "same\n").change is None
        assert store.ledger.tip.n == before

    def test_a_text_that_is_too_large_is_refused_and_nothing_is_lost(self, home: Opens) -> None:
        store = home()
        put(store, NOTE, "small\n")
        with pytest.raises(BadText):
            put(store, NOTE, "x" * (MAX_BYTES + 1))
        with pytest.raises(BadText):
            add(store, NOTE, "x" * MAX_BYTES)
        assert text_of(store, NOTE) == "small\n"

    def test_a_proposal_is_carried_out_once(self, home: Opens) -> None:
        store = home()
        name = store.key.name_of(store.append("proposal", {"content": "0" * 32}).n)
        batch = Batch(
            changes=(change(NOTE, Kind.APPEND, "- once\n"),),
            verdict=ALLOW,
            what="approve",
            of=f"p{name}",
            approver="me",
        )
        assert not store.write(batch).repeated
        assert home().write(batch).repeated
        assert text_of(store, NOTE) == "- once\n"

    # -- the ledger -----------------------------------------------------------------------------------------------------

    def test_every_batch_is_an_intent_and_done_in_one_whole_chain(self, home: Opens) -> None:
        store = home()
        assert not store.begun
        first = put(store, NOTE, "one\n")
        add(home(), NOTE, "two\n")
        assert store.begun
        records = list(store.ledger.records())
        assert [record.kind for record in records] == ["home", "intent", "done", "intent", "done"]
        assert [record.n for record in records] == [1, 2, 3, 4, 5]
        assert first.change == "2"

    def test_no_text_stands_in_the_ledger(self, home: Opens) -> None:
        store = home()
        put(store, NOTE, "a secret sentence\n", reason="a secret reason")
        assert "secret" not in repr(list(store.ledger.records()))

    def test_two_openings_have_one_key(self, home: Opens) -> None:
        keys: list[str] = []
        threads = [threading.Thread(target=lambda: keys.append(home().key.id)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(keys) == 4
        assert len(set(keys)) == 1

    def test_lines_are_known_by_who_wrote_them(self, home: Opens) -> None:
        store = home()
        put(store, NOTE, "- mine\n")
        add(store, NOTE, "- from the web\n", actor=Actor.AGENT, origin=Origin.WEB)
        view = home().provenance
        assert view.source(NOTE, "- mine").trusted
        assert not view.source(NOTE, "- from the web").trusted

    def test_other_records_stand_in_the_same_chain(self, home: Opens) -> None:
        store = home()
        record = store.append("deny", {"rule": "r"})
        assert [found.kind for found in home().ledger.records()] == ["home", "deny"]
        assert record.n == 2

    # -- history --------------------------------------------------------------------------------------------------------

    def test_each_write_is_a_revision_and_appends_come_with_the_next(self, home: Opens) -> None:
        store = home()
        first = put(store, NOTE, "one\n").revision
        assert add(store, OTHER, "- log\n").revision is None
        second = put(store, NOTE, "two\n").revision
        history = home().history
        assert history is not None
        assert first is not None
        assert second is not None
        assert history.head() == second
        assert history.show(first, "note.md") == b"one\n"
        assert history.show(second, "note.md") == b"two\n"
        assert history.show(second, "other.md") == b"- log\n"
        assert [revision.id for revision in history.log("note.md")] == [second, first]
        assert len(history.log(limit=2)) == 2
        assert set(history.tree(second)) >= {"note.md", "other.md"}

    def test_a_diff_tells_what_changed(self, home: Opens) -> None:
        store = home()
        first, second = put(store, NOTE, "one\nsame\n").revision, put(store, NOTE, "two\nsame\n").revision
        history = store.history
        assert history is not None
        assert first is not None
        assert second is not None
        diff = history.diff(first, second)
        assert "-one" in diff
        assert "+two" in diff
        assert "-same" not in diff
        assert history.diff(first, second, "other.md") == ""

    def test_a_revision_that_is_not_there_is_said_so(self, home: Opens) -> None:
        store = home()
        put(store, NOTE, "x\n")
        history = store.history
        assert history is not None
        with pytest.raises(NoSuchRevision):
            history.show("0123456789abcdef", "note.md")

    def test_history_anchors_the_chain(self, home: Opens) -> None:
        store = home()
        put(store, NOTE, "one\n")
        history = store.history
        assert history is not None
        known = {record.n: record.hash for record in store.ledger.records()}
        anchors = history.anchors()
        assert anchors
        assert all(known[n] == digest for n, digest in anchors)

    # -- small state ----------------------------------------------------------------------------------------------------

    def test_small_things_are_put_got_listed_and_removed(self, home: Opens) -> None:
        state = home().state
        assert state.get("pending/p1.json") is None
        assert state.version("pending/p1.json") is None
        state.put("pending/p1.json", b"one")
        before = state.version("pending/p1.json")
        state.put("pending/p1.json", b"two")
        state.put("pending/p2.json", b"")
        assert state.version("pending/p1.json") != before
        assert home().state.get("pending/p1.json") == b"two"
        assert sorted(state.names("pending")) == ["p1.json", "p2.json"]
        assert state.remove("pending/p1.json")
        assert not state.remove("pending/p1.json")
        assert list(state.names("pending")) == ["p2.json"]

    def test_what_is_put_only_when_new_stays_as_it_is(self, home: Opens) -> None:
        state = home().state
        state.put("mark", b"first", only_new=True)
        state.put("mark", b"second", only_new=True)
        assert state.get("mark") == b"first"

    def test_small_things_are_no_documents(self, home: Opens) -> None:
        store = home()
        store.state.put("pending/p1.json", b"x")
        assert list(store.documents.list_all()) == []

    def test_a_derived_file_has_one_place_and_is_no_part_of_the_home(self, home: Opens) -> None:
        store = home()
        place = Path(store.scratch("derived.sqlite", make=True))
        assert not place.exists()
        place.write_bytes(b"made from documents")
        assert Path(home().scratch("derived.sqlite")).read_bytes() == b"made from documents"
        assert store.scratch("other.sqlite") != str(place)
        assert list(store.documents.list_all()) == []
        place.unlink()
        assert not Path(home().scratch("derived.sqlite")).exists()

    # -- logs -----------------------------------------------------------------------------------------------------------

    def test_a_log_is_read_back_from_any_place_by_whoever_opens_it(self, home: Opens) -> None:
        logs = home().logs("talks")
        with logs.create("one") as log:
            log.begin(b"first\n")
            assert [log.append(b"second\n", sync=True), log.append(b"third\n", sync=False)] == [6, 13]
            log.sync()
        home().logs("talks").create("one").close()  # it is there, and stays as it is
        with home().logs("talks").open("one") as log:
            assert (log.id, log.size(), log.read(6, 13), log.read(13, 999)) == ("one", 19, b"second\n", b"third\n")
        with logs.append_to("one") as log, pytest.raises(BadArguments):
            log.begin(b"another first\n")

    def test_logs_of_another_folder_or_ending_are_others(self, home: Opens) -> None:
        store = home()
        places = [store.logs("talks"), store.logs("other"), store.logs("talks", suffix=".log.jsonl")]
        places[0].create("one").close()
        assert [[*logs.versions()] for logs in places] == [["one"], [], []]
        assert len({logs.name for logs in places}) == len({logs.path_of("one") for logs in places}) == 3

    def test_what_is_no_log_is_said_so(self, home: Opens) -> None:
        logs = home().logs("talks")
        assert logs.versions() == {} == logs.torn("one")
        assert logs.look("one") is None is logs.get("list.json")
        assert not logs.drop("one")
        for opens in (logs.open, logs.append_to):
            with pytest.raises(NoSuchSession):
                opens("one")
        for id in ("", "..", "a/b", "x" * 200):
            with pytest.raises(BadArguments):
                logs.create(id)
            with pytest.raises(NoSuchSession):
                logs.path_of(id)

    def test_a_state_tells_grown_from_written_anew(self, home: Opens) -> None:
        logs = home().logs("talks")
        with logs.create("one") as log, logs.append_to("one") as other:
            log.append(b"first\n", sync=True)
            first = logs.look("one")
            log.append(b"second\n", sync=True)
            grown = log.state()
            assert first and grown == logs.look("one") and logs.versions() == {"one": grown.version}
            assert (grown.of, grown.size) == (first.of, 13) and grown.version != first.version
            other.rewrite(lambda: [b"second\n"])
            anew = logs.look("one")
            assert anew and (anew.of != grown.of, anew.size) == (True, 7)
            assert log.append(b"third\n", sync=True) == 7
            log.follow()
            assert log.replaced == 1

    def test_a_log_that_is_dropped_is_gone_for_whoever_has_it_open(self, home: Opens) -> None:
        logs = home().logs("talks")
        with logs.create("one") as log:
            log.append(b"first\n", sync=True)
            assert home().logs("talks").drop("one")
            with pytest.raises(NoSuchSession):
                log.append(b"second\n", sync=True)
        assert logs.versions() == {}

    def test_a_line_without_its_end_is_completed_or_put_aside(self, home: Opens) -> None:
        store = home()
        logs = store.logs("talks", mend=lambda tail, before: b"\n" if tail == b"whole" else None)
        with logs.create("one") as log:
            log.append(b"whole", sync=True)
            log.append(b"torn", sync=True)
            log.append(b"next\n", sync=True)
            assert log.read(0, 99) == b"whole\nnext\n"
        assert [*logs.torn("one").values()] == [b"torn"] and logs.torn("two") == {}
        for name in logs.torn("one"):
            logs.drop_torn(name)
        assert logs.torn("one") == {}

    def test_a_file_beside_the_logs_is_replaced_whole(self, home: Opens) -> None:
        logs = home().logs("talks")
        logs.create("one").close()
        assert logs.put("list.json", b"{}") and logs.put("list.json", b"[]")
        assert home().logs("talks").get("list.json") == b"[]"

    def test_writers_of_many_threads_share_a_log_and_tear_nothing(self, home: Opens) -> None:
        home().logs("talks").create("one").close()

        def work(name: str) -> None:
            with home().logs("talks").append_to("one") as log:
                for n in range(20):
                    log.append(f"{name} {n}\n".encode(), sync=False)

        threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with home().logs("talks").open("one") as log:
            lines = log.read(0, log.size()).decode().splitlines()
        assert sorted(lines) == sorted(f"{name} {n}" for name in "abc" for n in range(20))

    # -- the lock -------------------------------------------------------------------------------------------------------

    def test_one_holds_the_lock_and_the_other_waits_no_longer_than_it_wants(self, home: Opens) -> None:
        store, busy = home(), []

        def try_it() -> None:
            try:
                with home().lock(patience=0.01):
                    pass
            except HomeBusy as error:
                busy.append(error)

        with store.lock(), store.lock():  # its holder may take it again
            thread = threading.Thread(target=try_it)
            thread.start()
            thread.join()
        assert len(busy) == 1
        with home().lock(patience=0.01):
            pass

    def test_an_error_lets_the_lock_go(self, home: Opens) -> None:
        with pytest.raises(ZeroDivisionError), home().lock():
            _ = 1 / 0
        with home().lock(patience=0.01):
            pass

    def test_a_lease_keeps_nobody_from_writing_and_numbers_its_holders(self, home: Opens) -> None:
        with home().lease("sweep") as first:
            assert put(home(), NOTE, "meanwhile\n").change is not None
            with home().lease("another"):
                pass
        with home().lease("sweep") as second:
            assert second > first

    def test_a_lease_has_one_holder(self, home: Opens) -> None:
        busy: list[HomeBusy] = []

        def try_it() -> None:
            try:
                with home().lease("sweep", patience=0.01):
                    pass
            except HomeBusy as error:
                busy.append(error)

        with home().lease("sweep"):
            thread = threading.Thread(target=try_it)
            thread.start()
            thread.join()
        assert len(busy) == 1

    def test_what_changed_since_a_mark_is_told_or_everything_may_have(self, home: Opens) -> None:
        store = home()
        put(store, OTHER, "before\n")
        mark, _ = store.changed(None)
        assert home().changed(mark)[1] in ((), None)
        put(store, NOTE, "one\n")
        put(store, DEEP, "two\n")
        store.write(Batch(changes=(change(DEEP, Kind.DELETE),), verdict=ALLOW))
        later, paths = home().changed(mark)
        assert paths in (("a/b/c.md", "note.md"), None)
        assert home().changed(later)[1] in ((), None)

    def test_writers_of_many_threads_lose_nothing(self, home: Opens) -> None:
        put(home(), NOTE, "")

        def work(name: str) -> None:
            store = home()
            for n in range(5):
                add(store, NOTE, f"- {name} {n}\n")

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store = home()
        lines = (text_of(store, NOTE) or "").splitlines()
        assert sorted(lines) == sorted(f"- {name} {n}" for name in "abcd" for n in range(5))
        numbers = [record.n for record in store.ledger.records()]
        assert numbers == list(range(1, len(numbers) + 1))
