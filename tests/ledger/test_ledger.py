"""The ledger: what is added stays, what is changed is found, and no text is in it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anima.errors import BadArguments, Damaged, NewerFormat
from anima.ledger import FORMAT, ORIGINAL, Edit, Intent, Key, Ledger, sealed
from anima.ledger.views import Provenance, Verification, verify
from anima.model import Actor, DocPath, Kind, Origin, Scope

KEY = Key(b"0123456789abcdef0123456789abcdef")
OTHER = Key(b"another key of enough bytes here")
NEW_KEY = Key(b"a key as long as those that are made for sealing")
NOON = datetime(2026, 5, 8, 12, 0, 0, 5, tzinfo=UTC)


class BytesLog:
    """A log in memory, which lets a test look at and change every byte."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.synced = 0
        self.reads = 0

    def size(self) -> int:
        return len(self.data)

    def read(self, start: int, end: int | None = None) -> bytes:
        piece = bytes(self.data[start:end])
        self.reads += len(piece)
        return piece

    def append(self, data: bytes, *, sync: bool) -> None:
        self.data += data
        if sync:
            self.synced = len(self.data)

    def truncate(self, size: int) -> None:
        del self.data[size:]


class FileLog:
    """A log in a real file, as a store would give it."""

    def __init__(self, path: Path) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def read(self, start: int, end: int | None = None) -> bytes:
        return os.pread(self.fd, (self.size() if end is None else end) - start, start)

    def append(self, data: bytes, *, sync: bool) -> None:
        os.write(self.fd, data)
        if sync:
            os.fsync(self.fd)

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fd, size)


class NarrowLog(BytesLog):
    """A log on a disk with room for so many bytes: a write beyond them is cut short and fails."""

    room = 1 << 30

    def append(self, data: bytes, *, sync: bool) -> None:
        super().append(data[: max(0, self.room - len(self.data))], sync=sync)
        if len(self.data) >= self.room:
            raise Damaged("the disk is full")


def open_ledger(log: Any, keep: Callable[[bytes], None] | None = None) -> Ledger:
    return Ledger(log, key=KEY, clock=lambda: NOON, keep=keep)


def filled(count: int = 8) -> BytesLog:
    """A ledger of `count` records of various kinds."""
    log = BytesLog()
    ledger = open_ledger(log)
    ledger.begin("aria")
    for i in range(1, count):
        ledger.add(["recall", "session", "deny"][i % 3], {"day": f"2026-05-{i:02}", "score": i / 7, "hits": [i]})
    return log


def lines_of(log: BytesLog) -> list[bytes]:
    return bytes(log.data).splitlines(keepends=True)


def of_lines(lines: Iterable[bytes]) -> BytesLog:
    return BytesLog(b"".join(lines))


def checked(log: BytesLog, anchors: Iterable[tuple[int, str]] = ()) -> Verification:
    return verify(log, key=KEY, anchors=anchors)


def fault_line(result: Verification) -> int:
    assert result.fault is not None
    return result.fault.line


def an_intent(name: str = "c1", **more: Any) -> Intent:
    edit = Edit(path="MEMORY.md", kind=Kind.WRITE, digest=KEY.of("x"), lines=KEY.line("x"))
    return Intent(id=name, what="write", edits=(edit,), actor=Actor.AGENT, origin=Origin.AGENT, **more)


# --- digests


@pytest.mark.parametrize(
    "other",
    [
        "- likes tea\r",
        "- likes tea  ",
        "   - likes tea",
        "* likes tea",
        "3. likes tea",
        "12) likes \t tea",
        "likes tea\n",
    ],
)
def test_a_line_keeps_its_digest_when_it_moves(other: str) -> None:
    assert KEY.line("- likes tea") == KEY.line(other)


@pytest.mark.parametrize(
    "other", ["- likes teas", "- Likes tea", "# likes tea", "-likes tea", "> likes tea", "- [x] likes tea"]
)
def test_a_line_that_says_something_else_has_another_digest(other: str) -> None:
    assert KEY.line("- likes tea") != KEY.line(other)


def test_composed_and_decomposed_letters_are_one_line() -> None:
    assert KEY.line("caf\u00e9") == KEY.line("cafe\u0301")


def test_blank_lines_and_bare_markers_have_no_digest() -> None:
    assert {KEY.line(line) for line in ("", "  \r", "-", "- ")} == {""}
    assert KEY.distinct("\n  \r\n-\n- \nx\n") == KEY.line("x")


def test_crlf_and_lf_texts_have_the_same_lines_but_not_the_same_text() -> None:
    assert KEY.distinct("- a\r\n- b\r\n") == KEY.distinct("- a\n- b\n")
    assert KEY.of("- a\r\n") != KEY.of("- a\n")


def test_digests_depend_on_the_key_and_on_their_purpose() -> None:
    other = OTHER
    assert KEY.line("likes tea") != other.line("likes tea")
    assert KEY.of("likes tea") != KEY.line("likes tea")
    assert KEY.of("likes tea") not in (sha256(b"likes tea").hexdigest()[:32], other.of("likes tea"))


def test_a_lone_surrogate_has_a_digest() -> None:
    assert KEY.line("\ud800") and KEY.of("\ud800")


_LINES = st.text(alphabet="-*+1٣.) \t\r\v\x85\u2000\u2028\xa0ae\u0301é\u0338\ud800\u1100\u1161\n\n  ab0-", max_size=40)


@given(_LINES)
def test_the_lines_of_a_text_have_the_digests_that_each_has_alone(text: str) -> None:
    alone = [KEY.line(line) for line in text.split("\n")]
    solid = [digest for digest in dict.fromkeys(alone) if digest]
    assert KEY.each(KEY.distinct(text)) == solid
    assert KEY.each(KEY.distinct(text, solid[:2])) == solid[2:]


def test_a_long_text_has_its_own_digests_however_many_were_asked_for_before() -> None:
    texts = ["".join(f"- line {n:06} of {name * 200}\n" for n in range(6_000)) for name in "abcdef"]
    key, told = Key(b"k" * 32), [Key(b"k" * 32).distinct(text) for text in texts]
    for n in (0, 1, 2, 3, 4, 5, 0, 5, 5, 1):
        again = "".join(list(texts[n]))  # equal, and another object
        assert (key.of(again), key.distinct(again)) == (Key(b"k" * 32).of(texts[n]), told[n])
    assert key.distinct(texts[0], Key.each(told[0])[1:]) == key.line("line 000000 of " + "a" * 200)


def test_the_digest_of_a_line_is_what_ledgers_hold() -> None:
    data = "likes café".encode()
    told = blake2b(KEY._secret + data, digest_size=8, person=b"anima line").hexdigest()
    assert KEY.distinct("likes  cafe\u0301\r\n 3) likes café") == KEY.line("- likes café") == told


def test_a_key_of_the_wrong_length_is_damage() -> None:
    with pytest.raises(Damaged):
        Key(b"short")


def test_a_key_does_not_show_its_secret() -> None:
    assert "0123456789" not in repr(KEY)


# --- adding and reading


def test_records_are_canonical_lines_numbered_from_one() -> None:
    log = filled(5)
    for number, line in enumerate(lines_of(log), start=1):
        raw = json.loads(line)
        digest = raw.pop("hash")
        body = json.dumps(raw, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        assert raw["n"] == number
        assert raw["t"] == "2026-05-08T12:00:00.000005+00:00"
        assert KEY.seal(body.encode()) == digest
    assert json.loads(lines_of(log)[0])["prev"] == ORIGINAL


def test_times_are_written_in_utc() -> None:
    local = NOON.astimezone(datetime.strptime("-0500", "%z").tzinfo)
    ledger = Ledger(BytesLog(), key=KEY, clock=lambda: local)
    assert ledger.begin("aria").time == NOON
    assert ledger.tip.n == 1


def test_what_was_added_is_read_back_after_opening(tmp_path: Path) -> None:
    first = open_ledger(FileLog(tmp_path / "ledger.jsonl"))
    first.begin("aria")
    added = [first.add("recall", {"q": KEY.of("tea"), "score": 0.25}, sync=False), first.intend(an_intent())]

    again = open_ledger(FileLog(tmp_path / "ledger.jsonl"))
    assert list(again.records())[1:] == added
    assert again.tip == first.tip


@given(count=st.integers(1, 40), after=st.integers(-1, 45))
def test_records_after_a_number_are_exactly_those(count: int, after: int) -> None:
    ledger = open_ledger(filled(count))
    assert [record.n for record in ledger.records(after)] == list(range(max(after, 0) + 1, count + 1))


def test_records_of_one_kind_are_only_those() -> None:
    ledger = open_ledger(filled(12))
    ledger.add("trust", {"note": '"kind":"recall"'})
    wanted = [record.n for record in ledger.records() if record.kind == "recall"]
    assert [record.n for record in ledger.records(kinds=("recall",))] == wanted != []
    assert [record.n for record in ledger.records(7, kinds=("recall", "trust"))] == [n for n in wanted if n > 7] + [13]


def test_opening_reads_only_the_end_of_a_long_ledger() -> None:
    log = filled(2000)
    log.reads = 0
    assert open_ledger(log).tip.n == 2000
    assert log.reads < log.size() / 10


def test_a_record_longer_than_any_block_is_read_back() -> None:
    log = filled(3)
    ledger = open_ledger(log)
    ledger.add("outside", {"lines": "".join(KEY.line(str(i)) for i in range(70_000))})
    ledger.add("done", {"id": "c1"})
    again = open_ledger(log)
    assert [record.n for record in again.records(2)] == [3, 4, 5]
    assert len(KEY.each(next(again.records(3)).fields["lines"])) == 70_000
    assert checked(log).ok


def long_intent() -> Intent:
    edit = Edit(path="MEMORY.md", kind=Kind.WRITE, lines="".join(KEY.line(str(i)) for i in range(5_000)))
    return replace(an_intent(taint=frozenset({Origin.WEB}), scope=Scope.MAIN), edits=(edit,))


def test_a_long_record_is_the_same_to_who_wrote_it_and_to_who_reads_it() -> None:
    log = filled(3)
    ledger, other = open_ledger(log), open_ledger(log)
    made = ledger.intend(long_intent())
    told = [next(each.records(3)) for each in (ledger, ledger, other, other, open_ledger(log))]
    assert told == [made] * 5
    assert [Intent.from_record(record) for record in told] == [long_intent()] * 5
    assert ledger.pending() == other.pending() == [long_intent()]
    assert list(ledger.records(4)) == list(ledger.records(kinds=("done",))) == []


def test_a_long_record_that_somebody_changes_is_believed_no_longer() -> None:
    log = filled(3)
    ledger = open_ledger(log)
    made = ledger.intend(long_intent())
    assert list(ledger.records(3)) == [made]
    at = log.data.index(KEY.line("7").encode())
    log.data[at : at + 32] = KEY.line("x").encode()
    assert list(ledger.records(3)) == ledger.pending() == []


@pytest.mark.parametrize(
    "fields", [{}, {"a": [1, "ü"]}, {"id": "c1"}, {"gone": {"hash": "x", "z": 0}, "hats": 2, "zz": None}]
)
def test_the_hash_of_a_record_is_that_of_its_line_without_it(fields: dict[str, Any]) -> None:
    record, line = sealed(7, "t", "done", fields, prev=ORIGINAL, key=KEY)
    body = {**fields, "n": 7, "t": "t", "kind": "done", "prev": ORIGINAL}
    assert record.hash == KEY.seal(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())
    rest = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()[1:]
    assert line == b'{"hash":"%s",%s\n' % (record.hash.encode(), rest)


def test_only_records_that_ask_for_it_are_synced() -> None:
    log = filled(2)
    ledger = open_ledger(log)
    before = log.synced
    ledger.add("recall", {"q": "d"}, sync=False)
    assert log.synced == before
    ledger.add("intent", {"id": "c"})
    assert log.synced == log.size()


@pytest.mark.parametrize(
    "value", ["two\nlines", "carriage\rreturn", "x" * 1025, ["x" * 1025], {"a": [{"b": "x\n"}]}, {"key\n": 1}]
)
def test_text_is_refused(value: object) -> None:
    log = filled(2)
    before = bytes(log.data)
    with pytest.raises(BadArguments):
        open_ledger(log).add("recall", {"q": value})
    assert bytes(log.data) == before


def test_only_digests_may_be_longer_than_a_path() -> None:
    ledger = open_ledger(filled(2))
    assert ledger.add("outside", {"lines": KEY.line("x") * 100}).n == 3
    with pytest.raises(BadArguments):
        ledger.add("outside", {"lines": KEY.line("x") * 100 + " "})


@pytest.mark.parametrize("name", ["n", "t", "kind", "prev", "hash"])
def test_a_field_cannot_take_the_place_of_the_chain(name: str) -> None:
    with pytest.raises(BadArguments):
        open_ledger(filled(2)).add("trust", {name: 1})


def test_no_word_of_a_document_or_reason_is_in_the_file(tmp_path: Path) -> None:
    ledger = open_ledger(FileLog(tmp_path / "ledger.jsonl"))
    ledger.begin("aria")
    text = "- Ana moved to Montevideo\n- her passphrase is swordfish\n"
    lines = KEY.distinct(text)
    edit = Edit(path="MEMORY.md", kind=Kind.WRITE, digest=KEY.of(text), lines=lines)
    intent = an_intent(reason=KEY.of("she told me about Montevideo"))
    ledger.intend(Intent(**{name: getattr(intent, name) for name in intent.__slots__} | {"edits": (edit,)}))
    data = (tmp_path / "ledger.jsonl").read_bytes()
    assert KEY.line("Ana moved to Montevideo").encode() in data
    assert not any(word in data for word in (b"Ana", b"Montevideo", b"passphrase", b"swordfish"))


# --- the first record


def test_a_home_is_begun_once() -> None:
    log = BytesLog()
    first = open_ledger(log).begin("aria")
    assert open_ledger(log).begin("aria") == first
    assert len(lines_of(log)) == 1


def test_another_key_is_noticed() -> None:
    log = filled(3)
    with pytest.raises(Damaged, match="key"):
        Ledger(log, key=OTHER, clock=lambda: NOON).begin("aria")
    fault = verify(log, key=OTHER).fault
    assert fault is not None and fault.kind == "key"


def test_a_first_record_whose_key_was_altered_is_no_other_key() -> None:
    lines = lines_of(filled(3))
    fault = checked(of_lines([lines[0].replace(KEY.id.encode(), OTHER.id.encode()), *lines[1:]])).fault
    assert fault is not None and (fault.line, fault.kind) == (1, "altered")


def test_a_newer_format_is_not_touched() -> None:
    log = BytesLog()
    open_ledger(log).add("home", {"format": FORMAT + 1, "id": "aria", "key": KEY.id})
    with pytest.raises(NewerFormat, match="version"):
        open_ledger(log).begin("aria")


def test_a_ledger_without_its_first_record_is_damage() -> None:
    with pytest.raises(Damaged):
        open_ledger(of_lines(lines_of(filled(4))[1:])).begin("aria")


# --- intents

origins = st.frozensets(st.sampled_from(Origin))
word = st.text(max_size=20).filter(lambda text: "\n" not in text and "\r" not in text)
digests = st.text("0123456789abcdef", min_size=32, max_size=32)
maybe_edit = st.builds(
    Edit,
    path=word,
    kind=st.sampled_from(Kind),
    base=st.none() | digests,
    digest=st.none() | digests,
    before=st.none() | st.integers(0, 1 << 40),
    after=st.none() | st.integers(0, 1 << 40),
    to=st.none() | word,
    temp=st.none() | word,
    lines=st.lists(digests, max_size=4).map("".join),
)
maybe_intent = st.builds(
    Intent,
    id=word,
    what=word,
    edits=st.lists(maybe_edit, max_size=3).map(tuple),
    actor=st.sampled_from(Actor),
    origin=st.sampled_from(Origin),
    session=st.none() | word,
    scope=st.none() | st.sampled_from(Scope),
    taint=origins,
    rule=st.none() | word,
    approver=st.none() | word,
    reason=st.none() | digests,
    of=st.none() | word,
)


@given(intent=maybe_intent)
def test_an_intent_comes_back_as_it_went_in(intent: Intent) -> None:
    log = filled(1)
    open_ledger(log).intend(intent)
    assert open_ledger(log).pending() == [intent]
    assert checked(log).ok


def test_an_intent_is_pending_until_it_is_done_or_failed() -> None:
    log = filled(3)
    ledger = open_ledger(log)
    ledger.intend(an_intent("c1"))
    ledger.intend(an_intent("c2"))
    ledger.add("recall", {"q": "d"}, sync=False)
    assert [intent.id for intent in open_ledger(log).pending()] == ["c1", "c2"]
    ledger.done("c1")
    assert [intent.id for intent in open_ledger(log).pending()] == ["c2"]
    ledger.failed("c2", why="disk-full")
    assert open_ledger(log).pending() == []


def test_an_intent_is_found_behind_thousands_of_recalls() -> None:
    log = filled(2)
    ledger = open_ledger(log)
    ledger.intend(an_intent("c1"))
    for _ in range(3000):
        ledger.add("recall", {"q": "d"}, sync=False)
    assert [intent.id for intent in open_ledger(log).pending()] == ["c1"]


def test_an_intent_that_cannot_be_read_is_damage() -> None:
    ledger = open_ledger(filled(2))
    ledger.add("intent", {"id": "c1", "what": "write", "edits": [{"path": "a.md", "kind": "shred"}]})
    with pytest.raises(Damaged, match="record 3"):
        ledger.pending()


# --- several at once


@given(turns=st.lists(st.integers(0, 2), max_size=30))
def test_ledgers_that_take_turns_keep_one_chain(turns: list[int]) -> None:
    log = BytesLog()
    ledgers = [open_ledger(log) for _ in range(3)]
    ledgers[0].begin("aria")
    for number, turn in enumerate(turns):
        ledgers[turn].add("recall", {"by": turn, "number": number})
    assert checked(log) == Verification(records=len(turns) + 1)
    assert [record.fields["number"] for record in ledgers[1].records(1)] == list(range(len(turns)))


def test_processes_that_share_a_file_see_each_other(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    one, two = open_ledger(FileLog(path)), open_ledger(FileLog(path))
    one.begin("aria")
    two.intend(an_intent("c1"))
    assert [intent.id for intent in one.pending()] == ["c1"]
    one.done("c1")
    assert [record.kind for record in two.records()] == ["home", "intent", "done"]
    assert verify(FileLog(path), key=KEY).ok


def test_threads_read_while_one_adds(tmp_path: Path) -> None:
    log = FileLog(tmp_path / "ledger.jsonl")
    ledger = open_ledger(log)
    ledger.begin("aria")
    finished, seen = threading.Event(), list[int]()

    def read() -> None:
        while not finished.is_set():
            seen.append(sum(1 for _ in ledger.records()))
            ledger.pending()

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(300):
        ledger.add("recall", {"number": number}, sync=False)
    finished.set()
    for reader in readers:
        reader.join()
    assert verify(log, key=KEY) == Verification(records=301)
    assert seen and max(seen) <= 301


def test_catching_up_reads_only_what_is_new() -> None:
    log = filled(2000)
    one, two = open_ledger(log), open_ledger(log)
    two.add("trust", {"path": "MEMORY.md"})
    log.reads = 0
    one.add("trust", {"path": "SOUL.md"})
    assert log.reads < 1000
    assert checked(log).ok


def test_a_ledger_that_shrank_is_told_of_once_and_then_goes_on() -> None:
    log = filled(6)
    ledger = open_ledger(log)
    log.truncate(sum(map(len, lines_of(log)[:4])))
    with pytest.raises(Damaged, match="shorter"):
        ledger.add("trust", {})
    assert ledger.add("trust", {}).n == 5
    assert checked(log).ok


def test_a_foreign_record_that_breaks_the_chain_is_told_of() -> None:
    log, other = filled(6), filled(9)
    ledger = open_ledger(log)
    log.data += lines_of(other)[7]
    assert [record.n for record in ledger.records()] == [1, 2, 3, 4, 5, 6, 8]
    with pytest.raises(Damaged, match="chain"):
        ledger.add("trust", {})
    assert fault_line(checked(log)) == 7


# --- crashes


def test_a_torn_record_is_passed_over_and_cut_by_the_next_add() -> None:
    whole = lines_of(filled(5))
    for size in range(1, len(whole[-1])):
        torn = whole[-1][:size]
        log, kept = of_lines([*whole[:-1], torn]), list[bytes]()
        assert checked(log) == Verification(records=4, torn=size)
        ledger = open_ledger(log, kept.append)
        assert [record.n for record in ledger.records()] == [1, 2, 3, 4]
        assert bytes(log.data).endswith(torn)
        assert ledger.add("trust", {}).n == 5
        assert kept == [torn]
        assert checked(log) == Verification(records=5)


def test_a_torn_first_record_is_begun_again() -> None:
    whole = lines_of(filled(1))[0]
    for size in range(len(whole)):
        log = BytesLog(whole[:size])
        open_ledger(log).begin("aria")
        assert bytes(log.data) == whole


def test_a_torn_record_of_somebody_else_is_left_alone_by_readers() -> None:
    log = filled(4)
    ledger = open_ledger(log)
    log.data += b'{"half":'
    assert len(list(ledger.records())) == 4
    assert ledger.pending() == []
    assert bytes(log.data).endswith(b'{"half":')
    log.truncate(log.size() - 8)
    assert ledger.add("trust", {}).n == 5


def test_a_full_disk_loses_nothing_that_was_added() -> None:
    whole = lines_of(filled(5))
    for room in range(len(whole[-1])):
        log = NarrowLog(b"".join(whole))
        ledger = open_ledger(log)
        log.room = log.size() + room
        with pytest.raises(Damaged, match="full"):
            ledger.intend(an_intent("c1"))
        log.room = 1 << 30
        assert ledger.pending() == []
        assert ledger.intend(an_intent("c2")).n == 6
        assert checked(log) == Verification(records=6)


def test_an_add_that_failed_after_its_write_is_pending() -> None:
    log = NarrowLog(b"".join(lines_of(filled(3))))
    probe = BytesLog(bytes(log.data))
    open_ledger(probe).intend(an_intent("c1"))
    log.room = probe.size()
    ledger = open_ledger(log)
    with pytest.raises(Damaged):
        ledger.intend(an_intent("c1"))
    log.room = 1 << 30
    assert [intent.id for intent in ledger.pending()] == ["c1"]
    ledger.failed("c1")
    assert ledger.pending() == [] and checked(log) == Verification(records=5)


@pytest.mark.parametrize(
    "junk", [b"\0\0\0\n", b"\n", b'{"n":5}\n', b"[]\n\n17\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n"]
)
def test_a_damaged_end_is_refused_and_nothing_is_written(junk: bytes) -> None:
    log = filled(4)
    log.data += junk + b"torn"
    kept = list[bytes]()
    ledger = open_ledger(log, kept.append)
    assert len(list(ledger.records())) == 4
    with pytest.raises(Damaged, match="damaged"):
        ledger.add("trust", {})

    assert kept == [b"torn"] and log.data.endswith(junk)
    assert fault_line(checked(log)) == 5


# --- tampering


@settings(max_examples=400)
@given(data=st.data())
def test_a_flipped_bit_is_found_where_it_is(data: st.DataObject) -> None:
    log = filled()
    lines = lines_of(log)
    offset = data.draw(st.integers(0, log.size() - 1))
    log.data[offset] ^= 1 << data.draw(st.integers(0, 7))
    line = next(i for i in range(1, len(lines) + 1) if offset < sum(map(len, lines[:i])))
    result = checked(log)
    if offset == log.size() - 1:
        assert result == Verification(records=len(lines) - 1, torn=len(lines[-1]))
        return
    assert fault_line(result) == line
    assert result.fault is not None and result.fault.offset == sum(map(len, lines[: line - 1]))
    assert f"line {line}:" in result.fault.what


@given(data=st.data())
def test_a_dropped_record_is_found_where_it_was(data: st.DataObject) -> None:
    lines = lines_of(filled())
    gone = data.draw(st.integers(0, len(lines) - 2))
    result = checked(of_lines(lines[:gone] + lines[gone + 1 :]))
    assert fault_line(result) == gone + 1
    assert result.fault is not None and result.fault.kind == "missing"


@given(data=st.data())
def test_swapped_records_are_found_at_the_first(data: st.DataObject) -> None:
    lines = lines_of(filled())
    one, two = sorted(data.draw(st.lists(st.integers(0, len(lines) - 1), min_size=2, max_size=2, unique=True)))
    lines[one], lines[two] = lines[two], lines[one]
    result = checked(of_lines(lines))
    assert result.fault is not None
    assert (result.fault.line, result.fault.kind) == (one + 1, "order")
    assert f"stands in line {two + 1}" in result.fault.what


@given(data=st.data())
def test_a_repeated_record_is_found(data: st.DataObject) -> None:
    lines = lines_of(filled())
    one = data.draw(st.integers(0, len(lines) - 1))
    place = data.draw(st.integers(one + 1, len(lines)))
    result = checked(of_lines([*lines[:place], lines[one], *lines[place:]]))
    assert result.fault is not None
    assert (result.fault.line, result.fault.kind) == (place + 1, "repeated")


def unsealed(body: bytes) -> str:
    """The hash of a record as anybody can make it."""
    return sha256(body).hexdigest()


def forged(after: bytes, seal: Callable[[bytes], str] = KEY.seal, **fields: Any) -> bytes:
    """A record as somebody would make it who knows how the chain works, and has the key or has not."""
    last = json.loads(after)
    log = BytesLog()
    raw = {"n": last["n"] + 1, "t": last["t"], "kind": "trust", "prev": last["hash"], **fields}
    body = json.dumps(raw, sort_keys=True, separators=(",", ":"))
    raw["hash"] = seal(body.encode())
    log.data += json.dumps(raw, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    return bytes(log.data)


def rewritten(lines: Iterable[bytes], seal: Callable[[bytes], str] = unsealed, **first: Any) -> BytesLog:
    """The same records in a chain that was made anew; `first` changes what the first says."""
    made = [json.dumps({"n": 0, "t": "", "hash": ORIGINAL}).encode()]
    for raw in map(json.loads, lines):
        own = {name: value for name, value in raw.items() if name not in ("n", "prev", "hash")}
        made.append(forged(made[-1], seal, **{**own, **(first if len(made) == 1 else {})}))
    return of_lines(made[1:])


@pytest.mark.parametrize("seal", [unsealed, OTHER.seal])
def test_without_the_key_no_record_can_be_added(seal: Callable[[bytes], str]) -> None:
    lines = lines_of(filled())
    log = of_lines([*lines, forged(lines[-1], seal)])
    assert checked(log).fault is not None and fault_line(checked(log)) == len(lines) + 1
    assert "trust" not in [record.kind for record in open_ledger(log).records()]
    with pytest.raises(Damaged, match="damaged"):
        open_ledger(log).add("recall", {})


def test_without_the_key_no_interrupted_batch_can_be_put_in() -> None:
    lines = lines_of(filled())
    begun = an_intent().fields()
    assert open_ledger(of_lines([*lines, forged(lines[-1], kind="intent", **begun)])).pending() != []
    assert open_ledger(of_lines([*lines, forged(lines[-1], unsealed, kind="intent", **begun)])).pending() == []


@pytest.mark.parametrize("said", [2, FORMAT])
def test_without_the_key_a_chain_cannot_be_made_anew(said: int) -> None:
    log = rewritten(lines_of(filled()), format=said)
    assert list(open_ledger(log).records()) == []
    assert not checked(log).ok


def test_a_forged_record_put_in_is_found() -> None:
    lines = lines_of(filled())
    result = checked(of_lines([*lines[:3], forged(lines[2]), *lines[3:]]))
    assert fault_line(result) == 5  # two records are the fourth; the second of them no longer fits


def test_a_record_rewritten_with_a_fitting_hash_is_found() -> None:
    lines = lines_of(filled())
    result = checked(of_lines([*lines[:3], forged(lines[2]), *lines[4:]]))
    assert result.fault is not None
    assert (result.fault.line, result.fault.kind) == (5, "unlinked")


def test_a_truncated_ledger_is_found_through_an_anchor() -> None:
    log = filled()
    tip = open_ledger(log).tip
    lines = lines_of(log)
    for count in range(len(lines)):
        cut = of_lines(lines[:count])
        assert checked(cut).ok
        result = checked(cut, [(tip.n, tip.hash)])
        assert result.fault is not None
        assert (result.fault.line, result.fault.kind) == (count + 1, "truncated")
        assert result.fault.offset == cut.size()


def test_a_ledger_rewritten_from_some_record_on_is_found_through_an_anchor() -> None:
    lines = lines_of(filled())
    anchors = [(raw["n"], raw["hash"]) for raw in map(json.loads, lines)][2::3]
    made = lines[:4]
    while len(made) < len(lines):
        made.append(forged(made[-1]))
    assert checked(of_lines(made)).ok
    result = checked(of_lines(made), anchors)
    assert result.fault is not None
    assert (result.fault.line, result.fault.kind) == (6, "rewritten")
    assert "after record 3" in result.fault.what


def test_a_sound_ledger_agrees_with_all_its_anchors() -> None:
    lines = lines_of(filled())
    assert checked(of_lines(lines), [(0, ORIGINAL), *((raw["n"], raw["hash"]) for raw in map(json.loads, lines))]).ok


def test_two_anchors_that_contradict_each_other_cannot_both_hold() -> None:
    log = filled()
    tip = open_ledger(log).tip
    assert not checked(log, [(tip.n, tip.hash), (tip.n, "0" * 64)]).ok


def test_an_empty_ledger_is_sound() -> None:
    assert checked(BytesLog()) == Verification(records=0)


@settings(max_examples=200)
@given(data=st.data())
def test_readers_never_fail_whatever_the_bytes(data: st.DataObject) -> None:
    log = filled(5)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, log.size()))
        log.data[place : place + data.draw(st.integers(0, 30))] = data.draw(st.binary(max_size=30))
    ledger = open_ledger(log)
    assert len(list(ledger.records())) <= len(bytes(log.data).split(b"\n"))
    assert not verify(log, key=KEY, anchors=[(3, "0" * 64)]).ok
    try:
        ledger.add("trust", {})
    except Damaged:
        return
    assert open_ledger(log).tip.hash == ledger.tip.hash


def test_clocks_that_run_backwards_do_not_matter() -> None:
    log = BytesLog()
    times = iter([NOON, NOON - timedelta(days=1), NOON])
    ledger = Ledger(log, key=KEY, clock=lambda: next(times))
    ledger.begin("aria")
    ledger.add("trust", {})
    ledger.add("trust", {})
    assert checked(log).ok


# --- where lines came from


@pytest.mark.parametrize("asked", [(), (1,), (2,), (1, 2, 3)])
def test_a_line_has_the_source_it_should_whenever_somebody_asks(asked: tuple[int, ...]) -> None:
    ledger, view, path = open_ledger(filled(0)), Provenance(KEY), DocPath.parse("MEMORY.md")
    first = Edit(path="MEMORY.md", kind=Kind.WRITE, digest=KEY.of("1"), lines=KEY.distinct("- web\n- both\n"))
    back = replace(first, lines=KEY.distinct("- web\n- new\n"))
    again = replace(first, lines=KEY.distinct("- both\n"))
    told = [(1, "write", first, Origin.WEB), (2, "undo", back, Origin.OWNER), (3, "write", again, Origin.OWNER)]
    for number, what, edit, origin in told:
        ledger.intend(replace(an_intent(str(number)), what=what, edits=(edit,), origin=origin))
        ledger.done(str(number))
        view.follow(ledger)
        assert number not in asked or view.source(path, "- web").origin is Origin.WEB
    sources = {line: view.source(path, line) for line in ("* web", "both", "new", "else")}
    assert {line: source.change for line, source in sources.items()} == {
        "* web": "1",
        "both": "3",
        "new": None,  # an undo vouches for nothing that no record knows
        "else": None,
    }
    assert sources["* web"].origin is Origin.WEB and sources["else"].origin is Origin.OUTSIDE
