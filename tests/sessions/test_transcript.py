"""Transcripts: what was said is on the disk, and whatever becomes of its bytes, the rest can be read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import anima
from anima.config import SessionsConfig
from anima.errors import BadArguments, BadConfig, Damaged, NoSuchSession
from anima.gate.scan import redact
from anima.ledger import Readable, line_at
from anima.sessions.find import Listed, TranscriptIndex
from anima.sessions.record import Transcript, encode, forget, transcripts_in
from anima.sessions.replay import (
    START,
    Asker,
    BadLine,
    Boundary,
    Close,
    Count,
    Flush,
    Header,
    Other,
    Placed,
    Record,
    Tombstone,
    TrustState,
    Turn,
    count,
    header_of,
    parse,
    read,
    resumed,
    scan,
    stamp,
    time_of,
)
from anima.sessions.transcripts import redaction, slim_list
from anima.store import Logs, Rules
from anima.store.folder import Folder
from anima.store.place import FolderStore

NOON = datetime(2026, 5, 8, 12, 0, tzinfo=UTC)
TIME = stamp(NOON)


class Bytes:
    """A transcript in memory that notes how much of it was read."""

    def __init__(self, data: bytes) -> None:
        self.data, self.touched = data, 0

    def size(self) -> int:
        return len(self.data)

    def read(self, start: int, end: int) -> bytes:
        piece = self.data[start:end]
        self.touched += len(piece)
        return piece


class Ticking:
    """A clock that goes on a second whenever it is asked."""

    def __init__(self, now: datetime = NOON, step: float = 1.0) -> None:
        self.now, self.step = now, timedelta(seconds=step)

    def __call__(self) -> datetime:
        self.now += self.step
        return self.now


def damaged_in(file: Readable) -> tuple[BadLine, ...]:
    """Every line that cannot be read."""
    return tuple(item for item in scan(file) if isinstance(item, BadLine))


def store_at(root: Path) -> FolderStore:
    return FolderStore(Folder(root), Rules(clock=lambda: NOON, author="kate", is_closed=lambda path: False))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FolderStore]:
    found = store_at(tmp_path)
    yield found
    found.close()


@pytest.fixture
def folder(store: FolderStore) -> Logs:
    return transcripts_in(store, "sessions")


class Listing:
    """The list of some transcripts, as whoever may see all asks for it."""

    def __init__(self, store: FolderStore, logs: Logs) -> None:
        make = lambda: store.scratch("talks.sqlite", make=True)  # noqa: E731
        self.logs = logs
        self.index = TranscriptIndex(store.scratch("talks.sqlite"), redact=redact, make=make)

    def rows(
        self,
        agent: str | None = None,
        layers: frozenset[str] | None = None,
        scopes: frozenset[str] | None = None,
        limit: int | None = None,
    ) -> list[Listed]:
        return [*self.index.rows(self.logs, Asker(agent=agent, layers=layers, scopes=scopes), limit)]

    def get(self, id: str) -> Listed | None:
        return self.index.get(self.logs, id)


Lists = Callable[[Logs], Listing]


@pytest.fixture
def listed(store: FolderStore) -> Lists:
    return lambda logs: Listing(store, logs)


def head(id: str = "one", **more: object) -> Header:
    return Header(id=id, timestamp=TIME, agent_id="kate", **{"source_plugin": "telegram", **more})  # type: ignore[arg-type]


def begun(folder: Logs, id: str = "one", **more: object) -> Transcript:
    return Transcript.create(folder, head(id, **more), clock=Ticking(), redact=redact)


def said(number: int, text: str = "hello") -> Turn:
    return Turn(timestamp=TIME, role="user", content=f"{text} {number}", source_plugin="telegram", sender_id="luis")


def lines_of(folder: Logs, id: str = "one") -> list[dict[str, object]]:
    with folder.open(id) as file:
        return [json.loads(line) for line in file.read(0, file.size()).splitlines()]


def contents(folder: Logs, id: str = "one") -> list[str]:
    with folder.open(id) as file:
        return [turn.content for turn in read(file, limit=10_000).entries]


# -- the format -------------------------------------------------------------------------------------------------------------


def test_the_lines_have_exactly_the_keys_of_the_format_in_their_order(folder: Logs) -> None:
    talk = begun(folder)
    talk.log("user", "hello", message_id="m1", sender_id="user123")
    talk.log("assistant", "hello Luis")
    talk.close("done")
    header, user, assistant, close = lines_of(folder)
    assert header == {
        "type": "session",
        "version": 1,
        "id": "one",
        "timestamp": TIME,
        "agent_id": "kate",
        "source_plugin": "telegram",
    }
    assert list(user) == ["type", "timestamp", "role", "content", "message_id", "source_plugin", "sender_id"]
    assert list(assistant) == ["type", "timestamp", "role", "content", "source_plugin"]
    assert (user["source_plugin"], assistant["source_plugin"]) == ("telegram", "")
    assert close == {"type": "close", "timestamp": stamp(NOON + timedelta(seconds=3)), "reason": "done"}


def test_the_header_carries_scope_persona_and_manifest_after_the_keys_of_the_format(folder: Logs) -> None:
    rows = ({"path": "SOUL.md", "status": "shown"}, {"path": "USER.md", "status": "hidden"})
    begun(
        folder, scope="group", sender_id="ana", layer="ana", persona="SOUL_EVIL.md", manifest=rows, parent="zero"
    ).close()
    assert list(lines_of(folder)[0])[6:] == ["scope", "sender_id", "layer", "persona", "manifest", "parent"]
    with folder.open("one") as file:
        found = header_of(file)
    assert found == head(
        scope="group", sender_id="ana", layer="ana", persona="SOUL_EVIL.md", manifest=rows, parent="zero"
    )


RECORDS: tuple[Record, ...] = (
    head(scope="main", layer="", manifest=({"path": "SOUL.md", "chars": 12},)),
    Turn(
        timestamp=TIME,
        role="tool",
        content="a\nb\0c\u2028d é 漢字 🌿",
        message_id="m",
        source_plugin="x",
        sender_id="s",
    ),
    Boundary(uuid="u", timestamp=TIME, token_count=180_000, turn_index=40, summary="we spoke of boats"),
    TrustState(timestamp=TIME, taint=("tool", "web"), flows=("no-outbound",)),
    Flush(timestamp=TIME, fields={"cycle": 2, "digests": ["a", "b"]}),
    Tombstone(timestamp=TIME, entries=3),
    Close(timestamp=TIME, reason="reset"),
)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_every_record_reads_back_as_it_was_written(record: Record) -> None:
    line = encode(record)
    assert line.count(b"\n") == 1
    assert isinstance(json.loads(line), dict)
    assert parse(line) == record


BLANKS = b" \t\t \t   \t  \t\t  \t \t \t\t \t\t\t \t "  # earlier transcripts end each line in 32 blanks and tabs


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_lines_that_end_in_blanks_and_tabs_are_read_as_any_other(record: Record) -> None:
    assert parse(encode(record)[:-1] + BLANKS) == record


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=60))
@example("\ud83c\udf3f")
@example("\ud800 alone")
@example('{"type":"entry"}\n{"type":"entry"}')
def test_any_text_can_be_said_and_only_half_characters_are_replaced(text: str) -> None:
    found = parse(encode(Turn(timestamp=TIME, role="user", content=text)))
    assert isinstance(found, Turn)
    assert found.content == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def test_what_json_cannot_say_and_kinds_nobody_knows_are_not_written() -> None:
    with pytest.raises(BadArguments, match="unknown kind"):
        encode(Other(kind="mood"))
    with pytest.raises(BadArguments, match="cannot hold"):
        encode(Flush(timestamp=TIME, fields={"when": NOON}))


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200))
@example(b"[" * 100_000)
@example(b'{"type":"entry","timestamp":1,"role":"user","content":"x"}')
@example(b'{"type":["entry"]}')
@example(b'{"type":"state","taint":3}')
@example(b'{"n":' + b"1" * 5000 + b"}")
@example(b'{"type":"entry","a":' + b'["\\u0041",' * 700 + b"1" + b"]" * 700 + b"}")
def test_no_bytes_make_the_reader_raise(data: bytes) -> None:
    for file in (Bytes(data), Bytes(encode(head()) + data), Bytes(encode(head()) + data + b"\n" + encode(said(1)))):
        page = read(file, limit=5, newest=True)
        assert page.total >= len(page.entries)
        read(file, start=1, limit=1)
        damaged_in(file)
        resumed(file)


def test_times_of_any_clock_are_read() -> None:
    assert (
        time_of("2026-05-08T12:00:00Z") == time_of("2026-05-08T14:00:00+02:00") == time_of("2026-05-08T12:00") == NOON
    )
    assert time_of("yesterday") is None
    assert time_of("0001-01-01T00:00:00+14:00") is None
    assert len(stamp(datetime(1, 1, 1, tzinfo=UTC))) == 24


# -- damage -----------------------------------------------------------------------------------------------------------------

_TALKS: tuple[tuple[Record, ...], ...] = (
    (head(), said(0), said(1), TrustState(timestamp=TIME, taint=("web",)), said(2, "so long"), Close(timestamp=TIME)),
    (
        head(manifest=({"path": "SOUL.md"},)),
        said(0),
        said(1, "good evening"),
        Turn(timestamp=TIME, role="assistant", content="a {\n} é"),
    ),
    (head(), said(0), said(1, "good evening")),
)


def _split(file: Bytes) -> tuple[list[Record], list[BadLine]]:
    found = list(scan(file))
    return (
        [item.record for item in found if isinstance(item, Placed)],
        [item for item in found if isinstance(item, BadLine)],
    )


def _plain(records: list[Record]) -> list[str]:
    return [repr(record).partition("number=")[0] for record in records]


@pytest.mark.parametrize("talk", _TALKS)
def test_a_cut_anywhere_in_the_last_two_records_costs_what_was_cut(talk: tuple[Record, ...]) -> None:
    raws = [encode(record) for record in talk]
    data, starts = b"".join(raws), [*accumulate(map(len, raws), initial=0)]
    for cut in range(starts[-3], len(data)):
        whole = sum(1 for start in starts[1:] if start - 1 <= cut)  # a line may lack its newline
        kept, damaged = _split(Bytes(data[:cut]))
        assert _plain(kept) == _plain(list(talk[:whole]))
        assert [(each.offset, each.line, each.torn) for each in damaged] == (
            [] if cut <= starts[whole] else [(starts[whole], whole + 1, True)]
        )


@pytest.mark.parametrize("talk", _TALKS)
def test_a_flipped_byte_anywhere_in_the_last_two_records_costs_no_other_line(talk: tuple[Record, ...]) -> None:
    raws = [encode(record) for record in talk]
    data, starts = b"".join(raws), [*accumulate(map(len, raws), initial=0)]
    assert len(set(_plain(list(talk)))) == len(talk)
    for place in range(starts[-3], len(data)):
        hit = len(talk) - (2 if place < starts[-2] else 1)
        lost = {hit, hit + 1} if place + 1 == starts[hit + 1] else {hit}  # without its newline, the next line too
        rest = _plain([record for n, record in enumerate(talk) if n not in lost])
        for value in {data[place] ^ bit for bit in (1, 2, 4, 8, 16, 32, 64, 128, 255)} | set(b'\n\r\t \0"{}\\') - {
            data[place]
        }:
            kept, damaged = _split(Bytes(data[:place] + bytes([value]) + data[place + 1 :]))
            assert [shown for shown in _plain(kept) if shown in rest] == rest, (place, value)
            assert len(kept) <= len(talk), (place, value)
            assert all(each.offset >= starts[hit] for each in damaged), (place, value)


def test_a_page_says_what_is_damaged_in_it_and_keeps_every_number() -> None:
    raws = [encode(head()), *(encode(said(n)) for n in range(6))]
    raws[3] = raws[3].replace(b'"role"', b'role"')
    file = Bytes(b"".join(raws) + b'{"type":"entry","timest')
    page = read(file, limit=10)
    assert [turn.number for turn in page.entries] == [0, 1, 3, 4, 5]
    assert [turn.content for turn in page.entries] == [f"hello {n}" for n in (0, 1, 3, 4, 5)]
    assert page.total == 6
    assert [(each.line, each.torn) for each in page.damaged] == [(4, False), (8, True)]
    assert not page.truncated
    assert [(e.line, e.torn) for e in read(file, start=3, limit=2).damaged] == [(8, True)]
    assert [(e.line, e.torn) for e in read(file, start=0, limit=3).damaged] == [(4, False), (8, True)]
    assert [turn.number for turn in read(file, limit=4, newest=True).entries] == [3, 4, 5]
    assert damaged_in(file) == page.damaged


def test_a_newline_that_is_lost_costs_the_line_it_makes() -> None:
    raws = [encode(head()), encode(said(0)), encode(said(1)), encode(said(2))]
    raws[1] = raws[1][:-1] + b"X"
    file = Bytes(b"".join(raws))
    page = read(file)
    assert [(turn.number, turn.content) for turn in page.entries] == [(1, "hello 2")]
    assert page.total == 2 == count(file).entries
    assert [each.line for each in page.damaged] == [2]


def test_a_taint_that_lost_its_line_or_its_word_is_not_passed_over() -> None:
    state, entry = encode(TrustState(timestamp=TIME, taint=("web",))), encode(said(0))
    for damaged in (entry[:-1] + state, state.replace(b'"taint"', b'"taunt"')):
        found = resumed(Bytes(encode(head()) + damaged))
        assert found is not None and len(found.damaged) == 1


def test_a_block_of_zeros_costs_what_it_covers() -> None:
    raws = [encode(head()), *(encode(said(n)) for n in range(20))]
    data = bytearray(b"".join(raws))
    at = len(raws[0]) + len(raws[1]) + 50
    data[at : at + 400] = bytes(400)
    page = read(Bytes(bytes(data)))
    ends = [*accumulate(map(len, raws))]
    covered = {n for n in range(20) if ends[n] < at + 400 and ends[n + 1] > at}
    assert len(covered) == 4
    assert [turn.content for turn in page.entries] == [f"hello {n}" for n in range(20) if n not in covered]
    assert len(page.damaged) == 1


# -- transcripts of other programs --------------------------------------------------------------------------------------------


def test_a_transcript_of_another_program_is_read_whatever_its_blanks_key_order_and_line_ends() -> None:
    rows = [
        '{"type": "session", "version": 1, "id": "x", "timestamp": "t", "agent_id": "kate", "source_plugin": ""}',
        '{"role": "user", "content": "one", "timestamp": "t", "type": "entry", "source_plugin": "telegram"}',
        '{"type":"mood","value":"fine"}',
        '{ "type" : "entry", "timestamp":"t", "role":"assistant", "content":"\\ud83d\\ude00 two", "message_id":null}',
    ]
    for end in ("\n", "\r\n"):
        for last in ("", end):
            file = Bytes((end.join(rows) + last).encode())
            page = read(file)
            assert page.header is not None and page.header.agent_id == "kate"
            assert [(turn.number, turn.content) for turn in page.entries] == [(0, "one"), (1, "😀 two")]
            assert (page.total, page.damaged) == (2, ())
            assert [turn.content for turn in read(file, limit=1, newest=True).entries] == ["😀 two"]


def test_a_record_of_an_unknown_kind_is_passed_over_and_kept_on_disk(folder: Logs, tmp_path: Path) -> None:
    begun(folder).abandon()
    path = tmp_path / "sessions/one.jsonl"
    path.write_bytes(path.read_bytes() + b'{"type":"mood","value":"fine"}\n')
    again = Transcript.resume(folder, "one", clock=Ticking())
    assert again.log("user", "hello").number == 0
    again.close()
    assert [line["type"] for line in lines_of(folder)] == ["session", "mood", "entry", "close"]
    with folder.open("one") as file:
        kinds = [item.record for item in scan(file) if isinstance(item, Placed) and isinstance(item.record, Other)]
    assert kinds == [Other(kind="mood")]


# -- pages ------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_talk() -> bytes:
    """100,000 entries, with a state now and then."""
    parts = [encode(head())]
    for n in range(100_000):
        parts.append(
            encode(Turn(timestamp=TIME, role="user" if n % 2 else "assistant", content=f"line {n} {'x' * (n % 97)}"))
        )
        if n % 1000 == 0:
            parts.append(encode(TrustState(timestamp=TIME, taint=("web",))))
    return b"".join(parts)


def test_pages_of_a_long_session_are_right_wherever_they_are(long_talk: bytes) -> None:
    file = Bytes(long_talk)
    end = count(file)
    assert (end.entries, end.lines, end.offset) == (100_000, 100_101, len(long_talk))
    for start in (0, 1, 999, 1000, 1001, 50_000, 99_990):
        page = read(file, start=start, limit=20, known=end)
        assert [turn.number for turn in page.entries] == list(range(start, min(start + 20, 100_000)))
        assert all(turn.content.startswith(f"line {turn.number} ") for turn in page.entries)
        assert page.total == 100_000
    newest = read(file, start=5, limit=20, newest=True, known=end)
    assert [turn.number for turn in newest.entries] == list(range(99_975, 99_995))
    assert read(file, start=100_000).entries == () == read(file, limit=0).entries


def test_the_newest_page_of_a_long_session_touches_only_its_end(long_talk: bytes) -> None:
    end = count(Bytes(long_talk))
    file = Bytes(long_talk)
    page = read(file, limit=50, newest=True, known=end)
    assert [turn.number for turn in page.entries] == list(range(99_950, 100_000))
    assert file.touched < 1_200_000 < len(long_talk) / 10
    for turn in page.entries[:3]:
        assert isinstance(parse(line_at(Bytes(long_talk), turn.offset)), Turn)


def test_a_count_goes_on_where_an_earlier_one_ended(long_talk: bytes) -> None:
    half = count(Bytes(long_talk[:10_000_000]))
    file = Bytes(long_talk)
    assert count(file, since=half) == count(Bytes(long_talk))
    assert file.touched <= len(long_talk) - half.offset + 1
    assert count(file, since=Count(half.offset + 3, 1, 1)) == count(Bytes(long_talk))  # no place between two lines


# -- logging ----------------------------------------------------------------------------------------------------------------


def test_what_was_logged_is_given_back_with_its_number_and_place(folder: Logs) -> None:
    talk = begun(folder)
    turns = [talk.log("user", "one"), talk.log("assistant", "two"), talk.log("tool", "three")]
    assert [turn.number for turn in turns] == [0, 1, 2]
    assert talk.seen.entries == 3
    with folder.open("one") as file:
        assert [json.loads(line_at(file, turn.offset))["content"] for turn in turns] == ["one", "two", "three"]
        assert read(file).entries == tuple(turns)
        assert talk.seen.offset == file.size()
    talk.close()


def test_a_closed_transcript_takes_nothing_more_and_closing_twice_does_no_harm(folder: Logs) -> None:
    talk = begun(folder)
    talk.close("end")
    talk.close("again")
    with pytest.raises(BadArguments, match="closed"):
        talk.log("user", "hello")
    assert [line["type"] for line in lines_of(folder)] == ["session", "close"]


def test_wrong_roles_and_what_is_too_long_are_refused_and_nothing_is_written(folder: Logs) -> None:
    talk = begun(folder)
    with pytest.raises(BadArguments, match="role"):
        talk.log("robot", "hello")  # type: ignore[arg-type]
    with pytest.raises(BadArguments, match="at most"):
        talk.log("user", "x" * (33 * 2**20))
    talk.close()
    assert len(lines_of(folder)) == 2


def test_huge_and_strange_content_comes_back_as_it_was(folder: Logs) -> None:
    talk = begun(folder)
    texts = ["a\r\nb\nc\x00d\x1b[0m", "漢" * 1_700_000, "", "\u2028\u2029\x85 end", "tail"]
    for text in texts:
        talk.log("user", text)
    talk.close()
    assert contents(folder) == texts
    with folder.open("one") as file:
        assert [t.content for t in read(file, limit=2, newest=True).entries] == texts[-2:]


def test_a_clock_that_goes_backwards_changes_no_order(folder: Logs, listed: Lists) -> None:
    talk = Transcript.create(folder, head(), clock=Ticking(step=-60))
    for n in range(4):
        talk.log("user", f"{n}")
    talk.close()
    assert contents(folder) == ["0", "1", "2", "3"]
    row = listed(folder).rows()[0]
    assert row.updated_at >= row.started_at


def test_two_sessions_cannot_have_one_id(folder: Logs) -> None:
    begun(folder).log("user", "mine")
    with pytest.raises(BadArguments, match="already"):
        begun(folder)
    assert contents(folder) == ["mine"]


def test_a_transcript_that_is_removed_while_its_session_runs_is_begun_again(folder: Logs, tmp_path: Path) -> None:
    talk = begun(folder)
    talk.log("user", "before")
    (tmp_path / "sessions/one.jsonl").unlink()
    assert talk.log("user", "after").number == 0
    talk.close()
    assert contents(folder) == ["after"]
    assert lines_of(folder)[0]["type"] == "session"


def test_threads_that_log_into_one_transcript_lose_nothing_and_share_no_number(folder: Logs) -> None:
    talk, numbers = begun(folder), list[int]()

    def work(name: str) -> None:
        numbers.extend(talk.log("tool", f"{name} {n}").number for n in range(50))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    talk.close()
    assert sorted(numbers) == list(range(150))
    assert sorted(contents(folder)) == sorted(f"{name} {n}" for name in "abc" for n in range(50))


_SPEAKER = """
import sys
from datetime import UTC, datetime
from anima.store.folder import Folder
from anima.store.place import FolderStore
from anima.store import Rules
from anima.sessions.record import Transcript, transcripts_in
rules = Rules(clock=lambda: datetime.now(UTC), author="kate", is_closed=lambda path: False)
folder = transcripts_in(FolderStore(Folder(sys.argv[1]), rules), "sessions")
talk = Transcript.resume(folder, "one", clock=lambda: datetime.now(UTC))
sys.stdin.read(1)
for n in range(int(sys.argv[3])):
    turn = talk.log("tool", f"{sys.argv[2]} {n} " + sys.argv[2] * 2000)
    print(turn.number, flush=True)
if sys.argv[4] == "close":
    talk.close()
"""


def _speaker(root: Path, name: str, number: int, end: str = "close") -> subprocess.Popen[str]:
    source = str(Path(anima.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", _SPEAKER, str(root), name, str(number), end],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": source},
    )


def test_two_processes_in_one_session_tear_nothing_and_share_no_number(folder: Logs, tmp_path: Path) -> None:
    begun(folder).abandon()
    speakers = [_speaker(tmp_path, name, 150) for name in "AB"]
    for speaker in speakers:
        assert speaker.stdin is not None
        speaker.stdin.write("x")
        speaker.stdin.close()
    numbers: list[int] = []
    for speaker in speakers:
        assert speaker.stdout is not None
        numbers.extend(int(line) for line in speaker.stdout.read().split())
        assert speaker.wait() == 0
        speaker.stdout.close()
    assert sorted(numbers) == list(range(300))
    found = contents(folder)
    for name in "AB":
        assert [text for text in found if text.startswith(name)] == [f"{name} {n} {name * 2000}" for n in range(150)]
    with folder.open("one") as file:
        assert damaged_in(file) == ()


def test_a_session_that_was_killed_is_resumed_with_all_that_was_acknowledged(folder: Logs, tmp_path: Path) -> None:
    begun(folder).abandon()
    for turn in range(3):
        speaker = _speaker(tmp_path, "A", 100_000)
        assert speaker.stdin is not None and speaker.stdout is not None
        speaker.stdin.write("x")
        speaker.stdin.flush()
        for _ in range(10 * turn + 1):
            last = int(speaker.stdout.readline())
        speaker.kill()
        last = max([last, *(int(line) for line in speaker.stdout.read().splitlines() if line)])
        speaker.wait()
        speaker.stdin.close()
        speaker.stdout.close()
        again = Transcript.resume(folder, "one", clock=Ticking(), redact=redact)
        assert again.seen.entries > last
        assert again.log("user", "I am back").number == again.seen.entries - 1
        again.abandon()
    with folder.open("one") as file:
        assert damaged_in(file) == ()


# -- resuming ---------------------------------------------------------------------------------------------------------------


def test_a_resume_knows_header_taint_boundary_and_flushes(folder: Logs) -> None:
    talk = begun(folder, scope="main", layer="")
    talk.log("user", "one")
    talk.state(taint=["web"], flows=[])
    talk.flush(cycle=1)
    talk.boundary(uuid="b1", token_count=150_000, summary="short")
    talk.flush(cycle=2)
    talk.state(taint=["web", "tool"], flows=["quiet"])
    talk.log("user", "two")
    talk.close("end")
    again = Transcript.resume(folder, "one", clock=Ticking())
    found = again.resumed
    assert found is not None and found.state is not None and found.boundary is not None
    assert (again.header.scope, again.seen.entries) == ("main", 2)
    assert (found.state.taint, found.state.flows) == (("tool", "web"), ("quiet",))
    assert (found.boundary.uuid, found.boundary.turn_index, found.boundary.summary) == ("b1", 1, "short")
    assert [flush.fields for flush in found.flushes] == [{"cycle": 2}]
    assert found.damaged == []
    assert again.log("user", "three").number == 2
    again.abandon()
    more = Transcript.resume(folder, "one", clock=Ticking())
    assert more.resumed is not None
    more.close()


def test_a_resume_says_when_a_taint_may_be_lost(folder: Logs, tmp_path: Path) -> None:
    talk = begun(folder)
    talk.state(taint=["web"], flows=[])
    talk.log("user", "hello")
    talk.abandon()
    path = tmp_path / "sessions/one.jsonl"
    path.write_bytes(path.read_bytes().replace(b'["web"]', b'["web]'))
    again = Transcript.resume(folder, "one", clock=Ticking())
    assert again.resumed is not None and again.resumed.state is None
    assert [each.line for each in again.resumed.damaged] == [2]
    again.close()


def test_a_resume_puts_a_torn_last_line_aside(folder: Logs, tmp_path: Path) -> None:
    talk = begun(folder)
    talk.log("user", "hello")
    talk.abandon()
    path = tmp_path / "sessions/one.jsonl"
    path.write_bytes(path.read_bytes()[:-2])
    again = Transcript.resume(folder, "one", clock=Ticking())
    assert again.resumed is not None and [each.torn for each in again.resumed.damaged] == [True]
    assert again.log("user", "once more").number == 0
    again.close()
    assert contents(folder) == ["once more"]
    (aside,) = folder.torn("one").values()
    assert b"hello" in aside


def test_a_session_whose_header_cannot_be_read_is_not_resumed_and_still_read(folder: Logs, tmp_path: Path) -> None:
    talk = begun(folder, scope="main")
    talk.log("user", "hello")
    talk.abandon()
    path = tmp_path / "sessions/one.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"scope":"main"', b'"scope":"main'))
    with pytest.raises(Damaged, match="first line"):
        Transcript.resume(folder, "one", clock=Ticking())
    assert contents(folder) == ["hello"]
    with pytest.raises(NoSuchSession):
        Transcript.resume(folder, "two", clock=Ticking())
    path.write_bytes(b"")
    with pytest.raises(NoSuchSession):
        Transcript.resume(folder, "one", clock=Ticking())


# -- the pair ---------------------------------------------------------------------------------------------------------------


def test_a_pair_keeps_the_whole_log_and_what_the_model_still_sees(store: FolderStore) -> None:
    logs = transcripts_in(store, "agents/kate/sessions", suffix=".log.jsonl")
    seen = transcripts_in(store, "agents/kate/sessions", suffix=".jsonl")
    talk = Transcript.create(logs, head(), clock=Ticking(), redact=redact, context=seen)
    for n in range(5):
        talk.log("user", f"{n}")
    talk.boundary(uuid="b", token_count=9, summary="so far", turn_index=3)
    talk.log("user", "5")
    assert [line.get("content", line["type"]) for line in lines_of(seen)] == [
        "session",
        "compact_boundary",
        "3",
        "4",
        "5",
    ]
    assert seen.drop("one")
    talk.log("user", "6")
    talk.close()
    assert contents(logs) == ["0", "1", "2", "3", "4", "5", "6"]
    assert contents(seen) == ["6"]
    assert [*logs.versions()] == ["one"] == [*seen.versions()]
    again = Transcript.resume(logs, "one", clock=Ticking(), context=seen)
    again.log("user", "7")
    again.close()
    assert contents(seen) == ["6", "7"]
    store.close()


# -- secrets ------------------------------------------------------------------------------------------------------------------

CORPUS = Path(__file__).parents[1] / "corpora" / "secrets.jsonl"


def texts_with_secrets() -> list[tuple[str, str, list[str]]]:
    """(kind, text, secrets in it) of each example of the scan's that it finds; the keys are in parts in the file."""
    rows = [row for row in map(json.loads, CORPUS.read_text().splitlines()) if row["kind"]]
    texts = [(row["kind"], row["text"].replace("{}", "".join(row.get("parts", ["{}"])))) for row in rows]
    found = [(kind, text, [text[each.start : each.end] for each in redact(text)[1]]) for kind, text in texts]
    return [(kind, text, inside) for kind, text, inside in found if inside]


def test_no_secret_of_any_kind_reaches_transcript_list_or_torn_tail(
    folder: Logs, tmp_path: Path, listed: Lists
) -> None:
    examples = texts_with_secrets()
    kinds = {json.loads(line)["kind"] for line in CORPUS.read_text().splitlines()} - {None}
    assert {kind for kind, _, _ in examples} == kinds, "a kind the scan cannot find proves nothing here"
    for n, (_, text, inside) in enumerate(examples):
        talk = begun(folder, f"s{n}")
        assert talk.log("user", text).redacted
        talk.log("tool", text)
        talk.boundary(uuid="b", token_count=1, summary=text)
        talk.close(text)
        assert all(each not in turn for each in inside for turn in contents(folder, f"s{n}"))
    listing = listed(folder)
    assert all("[REDACTED:" in row.summary or len(row.summary) == 80 for row in listing.rows())
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for _, text, inside in examples:
        for secret in inside:
            raw = json.dumps(secret, ensure_ascii=False)[1:-1].encode()
            assert len(secret) < 8 or raw not in written, text


def test_patterns_of_the_owner_are_redacted_too(folder: Logs) -> None:
    patterns = [re.compile(r"project-\w+")]
    talk = Transcript.create(folder, head(), clock=Ticking(), redact=lambda text: redact(text, patterns))
    assert talk.log("user", "about project-lobster").content == "about [REDACTED:custom]"
    talk.close()


@pytest.mark.parametrize("bad", ["", "a*", "x?", "^", r"\b"])
def test_a_pattern_that_matches_nothing_is_refused(bad: str) -> None:
    with pytest.raises(BadConfig):
        redaction(SessionsConfig(patterns=(bad,)))


# -- forgetting -----------------------------------------------------------------------------------------------------------------


def test_forgetting_takes_out_what_was_said_and_leaves_a_tombstone(folder: Logs, tmp_path: Path, listed: Lists) -> None:
    talk = begun(folder)
    for text in ("my boat is blue", "the lobster ate it", "lobster again", "fine", 'a "lobster"\nonce'):
        talk.log("user", text)
    talk.state(taint=["web"], flows=[])
    talk.boundary(uuid="b", token_count=1, summary="about the lobster")
    path = tmp_path / "sessions/one.jsonl"
    with path.open("ab") as file:
        file.write(b'{"type":"entry","content":"a lobster torn')
    listing = listed(folder)
    listing.rows()
    talk.log("user", "after")
    assert forget(folder, "one", lambda text: "lobster" in text, clock=Ticking()) == 5
    assert talk.log("user", "still here").number == 3
    listing.rows()
    talk.close()
    assert contents(folder) == ["my boat is blue", "fine", "after", "still here"]
    marks = [(line["type"], line.get("entries")) for line in lines_of(folder) if line["type"] != "entry"]
    assert marks == [
        ("session", None),
        ("forgotten", 2),
        ("forgotten", 1),
        ("state", None),
        ("compact_boundary", None),
        ("close", None),
    ]
    for each in tmp_path.rglob("*"):
        assert not each.is_file() or b"lobster" not in each.read_bytes(), each
    assert forget(folder, "one", lambda text: "lobster" in text, clock=Ticking()) == 0


def test_forgetting_reaches_damaged_lines_and_escaped_text(folder: Logs, tmp_path: Path) -> None:
    begun(folder).abandon()
    path = tmp_path / "sessions/one.jsonl"
    path.write_bytes(
        path.read_bytes() + b'{"type":"entry","content":"caf\\u00e9 broken\n{"type":"mood","of":"caf\\u00e9"}\n'
    )
    assert forget(folder, "one", lambda text: "café" in text, clock=Ticking()) == 2
    assert b"caf" not in path.read_bytes()


# -- the list -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def some(folder: Logs) -> Logs:
    for n, (id, agent, layer) in enumerate((("a", "kate", ""), ("b", "kate", "ana"), ("c", "otto", ""))):
        header = Header(id=id, timestamp=stamp(NOON), agent_id=agent, layer=layer, scope="main", source_plugin="cli")
        talk = Transcript.create(folder, header, clock=Ticking(NOON + timedelta(hours=n)))
        talk.log("assistant", "welcome")
        talk.log("user", f"  first words\nof {id} " + "and more " * 20)
        talk.log("user", "second words")
        talk.close()
    return folder


def test_the_list_says_of_each_session_what_when_how_long_and_whose(some: Logs, listed: Lists) -> None:
    rows = listed(some).rows()
    assert [row.id for row in rows] == ["c", "b", "a"]
    row = rows[2]
    assert row.summary == "first words of a and more and more and more and more and more and more and more…"
    assert len(row.summary) == 80
    assert (row.entries, row.agent_id, row.layer, row.scope, row.source_plugin) == (3, "kate", "", "main", "cli")
    assert (row.started_at, row.updated_at) == (stamp(NOON), stamp(NOON + timedelta(seconds=4)))
    assert row.closed
    with some.open("a") as file:
        assert row.known == count(file)


def test_the_list_can_be_asked_for_one_agents_sessions_or_one_layers(some: Logs, listed: Lists) -> None:
    listing = listed(some)
    assert [row.id for row in listing.rows(agent="kate")] == ["b", "a"]
    assert [row.id for row in listing.rows(agent="kate", layers=frozenset({""}))] == ["a"]
    assert [row.id for row in listing.rows(agent="kate", limit=1)] == ["b"]
    assert len(listing.rows(agent="nobody")) == 0 == len(listing.rows(scopes=frozenset({"group"})))
    assert len(listing.rows(layers=frozenset({"", "ana"}))) == 3
    assert [row.id for row in listing.rows()[1:]] == ["b", "a"]


def test_a_session_that_grows_is_read_from_where_the_list_ended(some: Logs, tmp_path: Path, listed: Lists) -> None:
    listing = listed(some)
    listing.rows()
    again = Transcript.resume(some, "a", clock=Ticking(NOON + timedelta(days=1)))
    again.log("user", "once more")
    path = tmp_path / "sessions/a.jsonl"
    inode = path.stat().st_ino
    with path.open("r+b") as file:  # what was read before is not read again
        file.seek(path.read_bytes().index(b"second words"))
        file.write(b"SECOND")
    assert path.stat().st_ino == inode
    row = listing.get("a")
    assert row is not None
    assert (row.entries, row.closed, row.updated_at[:10]) == (4, False, "2026-05-09")
    assert listing.rows()[0].id == "a"
    again.close()
    found = listing.rows()[0]
    assert (found.entries, found.closed) == (4, True)


def test_a_session_that_is_gone_leaves_the_list(some: Logs, tmp_path: Path, listed: Lists) -> None:
    listing = listed(some)
    assert len(listing.rows()) == 3
    (tmp_path / "sessions/b.jsonl").unlink()
    assert [row.id for row in listing.rows()] == ["c", "a"]
    assert listing.get("b") is None


def test_broken_and_empty_transcripts_are_listed_as_nobodys(some: Logs, tmp_path: Path, listed: Lists) -> None:
    (tmp_path / "sessions/empty.jsonl").write_bytes(b"")
    (tmp_path / "sessions/broken.jsonl").write_bytes(b"\0" * 500 + b"\n" + encode(said(1)))
    found = {row.id: row for row in listed(some).rows()}
    assert (found["empty"].entries, found["empty"].agent_id) == (0, "")
    assert (found["broken"].entries, found["broken"].summary) == (1, "hello 1")


def test_names_that_are_no_sessions_are_left_out_and_do_no_harm(some: Logs, tmp_path: Path, listed: Lists) -> None:
    for name in ('a"b.jsonl', "two words.jsonl", ".hidden.jsonl", "x.log.jsonl", "line\nend.jsonl", "\udcff.jsonl"):
        (tmp_path / "sessions" / name).write_bytes(encode(head()))
    (tmp_path / "sessions/folder.jsonl").mkdir()
    (tmp_path / "sessions/link.jsonl").symlink_to(tmp_path / "sessions/a.jsonl")
    for _ in range(2):
        assert [row.id for row in listed(some).rows()] == ["c", "b", "a"]


def test_a_home_without_sessions_has_an_empty_list_and_nothing_is_made(
    folder: Logs, tmp_path: Path, listed: Lists
) -> None:
    listing = listed(folder)
    assert len(listing.rows()) == 0
    assert listing.get("one") is None
    assert list(tmp_path.iterdir()) == []


def test_the_slim_list_of_a_pair_has_two_keys_and_leaves_other_rows_alone(store: FolderStore, listed: Lists) -> None:
    logs = transcripts_in(store, "agents/kate/sessions", suffix=".log.jsonl")
    talk = begun(logs)
    talk.log("user", "hello there")
    talk.close()
    logs.put(
        "sessions.json", json.dumps({"version": 1, "sessions": {"theirs": {"summary": "x", "updatedAt": 5}}}).encode()
    )
    rows = listed(logs).rows()
    found = json.loads(slim_list(logs.get("sessions.json") or b"", rows))
    assert found["sessions"]["theirs"] == {"summary": "x", "updatedAt": 5}
    assert found["sessions"]["one"] == {"summary": "hello there", "updatedAt": stamp(NOON + timedelta(seconds=2))}
    assert [row.entries for row in rows] == [1]


def test_a_session_map_of_another_program_is_not_written_over(some: Logs, listed: Lists) -> None:
    theirs = json.dumps({"agent:main:main": {"sessionId": "a", "updatedAt": 1}}).encode()
    some.put("sessions.json", theirs)
    for _ in range(2):
        assert [row.id for row in listed(some).rows()] == ["c", "b", "a"]
    assert some.get("sessions.json") == theirs


def test_lists_of_several_processes_do_not_get_in_each_others_way(some: Logs, listed: Lists) -> None:
    first, second = listed(some), listed(some)
    assert len(first.rows()) == len(second.rows()) == 3
    talk = begun(some, "d")
    talk.log("user", "new")
    talk.close()
    assert len(first.rows()) == len(second.rows()) == 4
    assert [row.id for row in listed(some).rows()] == ["c", "b", "a", "d"]


def test_a_call_that_can_be_parsed_can_be_told_however_deep_its_arguments_are() -> None:
    given = '{"a":' * 600 + '"boat"' + "}" * 600
    raw = f'{{"type":"entry","timestamp":"{TIME}","role":"tool","content":"x","call":{{"arguments":{given}}}}}'
    found = parse(raw.encode())
    assert isinstance(found, Turn)
    assert found.text == "a: boat\nx"


# -- what a signature promises --------------------------------------------------------------------------------------------------


def test_start_is_the_place_before_everything() -> None:
    assert START == (0, 0, 0)
    assert list(scan(Bytes(b""))) == []
    assert read(Bytes(b"")).header is None
    assert resumed(Bytes(b"")) is None
