"""Searching in transcripts: found at once, only by whom they belong to, and never more than the files say."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_transcript import store_at, texts_with_secrets

from anima.gate.scan import redact
from anima.sessions.find import Quote, Quotes, TranscriptIndex, preview, sought
from anima.sessions.record import Transcript, forget, transcripts_in
from anima.sessions.replay import Asker, Header, stamp
from anima.text import cut

NOON = datetime(2026, 5, 8, 12, 0, tzinfo=UTC)
KATE = Asker(agent="kate")


class Place:
    """A sessions folder with its list and its index."""

    def __init__(self, root: Path) -> None:
        self.root, self.now = root, NOON
        self.store = store_at(root)
        self.folder = transcripts_in(self.store, "sessions")
        self.path = self.store.scratch("talks.sqlite", make=True)
        self.index = self.open()

    def open(self, path: str | None = None) -> TranscriptIndex:
        """The index as another process would open it."""
        return TranscriptIndex(path or self.path, redact=redact)

    def clock(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def begin(self, id: str, *, agent: str = "kate", layer: str = "", scope: str = "main") -> Transcript:
        header = Header(
            id=id, timestamp=stamp(self.clock()), agent_id=agent, layer=layer, scope=scope, source_plugin="cli"
        )
        return Transcript.create(self.folder, header, clock=self.clock, redact=redact)

    def say(self, id: str, *texts: str, agent: str = "kate", layer: str = "", scope: str = "main") -> None:
        talk = self.begin(id, agent=agent, layer=layer, scope=scope)
        for text in texts:
            talk.log("user", text)
        talk.close()

    def ask(
        self, query: str, *, asker: Asker = KATE, limit: int = 50, plain: bool = False, max_chars: int = 200
    ) -> Quotes:
        index = self.open(f"{self.path}/nowhere") if plain else self.index
        return index.find(self.folder, query, asker, limit=limit, max_chars=max_chars)

    def catch_up(self) -> int:
        return self.index.refresh(self.folder)

    def close(self) -> None:
        self.index.close()
        self.store.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    yield found
    found.close()


def previews(found: Quotes) -> list[str]:
    return [hit.preview for hit in found.hits]


# -- finding ------------------------------------------------------------------------------------------------------------------


def test_an_entry_is_found_by_its_words_with_its_place_and_time(place: Place) -> None:
    place.say("a", "good morning", "Ana uses a Samsung, not an iPhone")
    place.say("b", "the boat is blue")
    found = place.ask("which phone: SAMSUNG")
    assert found.backend == "fts5"
    (hit,) = place.ask("samsung iphones").hits
    assert (hit.session_id, hit.entry, hit.role, hit.source_plugin) == ("a", 1, "user", "cli")
    assert hit.timestamp == stamp(NOON + timedelta(seconds=3))
    assert hit.preview == "Ana uses a Samsung, not an iPhone"


def test_entries_with_all_the_words_come_latest_first(place: Place) -> None:
    place.say("a", "blue boats", "the boat", "a blue boat sinks")
    place.say("b", "boat, blue as ever")
    assert previews(place.ask("blue boat")) == ["boat, blue as ever", "a blue boat sinks", "blue boats"]
    assert previews(place.ask("blue boat", limit=2)) == ["boat, blue as ever", "a blue boat sinks"]
    assert place.ask("blue boat", limit=0).hits == ()


def test_where_no_entry_has_all_the_words_the_rarer_ones_count_more(place: Place) -> None:
    place.say("a", "the boat is here", "the boat was there", "a lobster sang", "boat boat boat")
    assert previews(place.ask("lobster boat")) == [
        "a lobster sang",
        "boat boat boat",
        "the boat was there",
        "the boat is here",
    ]
    assert place.ask("zebra xylophone").hits == ()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我们昨天去了东京塔", "东京"),
        ("我们昨天去了东京塔", "塔"),
        ("予約は来週の金曜日です", "金曜日"),
        ("다음 주에 서울에서 만나요", "서울"),
        ("ฉันชอบกาแฟดำ", "กาแฟ"),
        ("El niño comió piñas", "NINO pinas"),
        ("он купил лодку", "лодку"),
        ("call getUserName on http_2_server", "user name"),
        ("see issue #42 now", "#42"),
        ("I was running late", "runs"),
    ],
)
def test_words_of_any_language_are_found(place: Place, text: str, query: str) -> None:
    place.say("a", "nothing here", text)
    found = place.ask(query)
    assert (found.backend, [hit.entry for hit in found.hits]) == ("fts5", [1])


def test_a_search_does_not_tell_whether_anybody_else_ever_talked(place: Place) -> None:
    nobody = place.ask("boat")
    place.say("a", "the boat is blue", agent="somebody")
    assert place.ask("boat") == nobody


@pytest.mark.parametrize("query", ["🌿", "→", "%", "🌿 →"])
def test_a_query_without_words_is_looked_for_as_it_is_written(place: Place, query: str) -> None:
    place.say("a", "nothing", "a leaf 🌿 → 50%", "nothing again")
    found = place.ask(query)
    assert (found.backend, [hit.entry for hit in found.hits]) == ("plain", [1])


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "boat AND",
        "boat NOT blue",
        "text:boat",
        "boat*",
        "NEAR(boat)",
        "^boat",
        "(boat",
        "boat')--",
        '" OR 1=1 --',
        "-boat",
    ],
)
def test_no_sign_in_a_query_has_a_meaning(place: Place, query: str) -> None:
    place.say("a", "the blue boat", "something else")
    found = place.ask(query)
    assert [hit.entry for hit in found.hits] == ([0] if "boat" in query else [])
    assert found.notes == ()


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_a_query(tmp_path_factory: pytest.TempPathFactory, query: str) -> None:
    place = _shared(tmp_path_factory)
    found = place.ask(query, limit=5)
    assert found.notes == ()
    assert all(hit.session_id == "a" for hit in found.hits)


_PLACES: list[Place] = []


def _shared(factory: pytest.TempPathFactory) -> Place:
    if not _PLACES:
        _PLACES.append(Place(factory.mktemp("shared")))
        _PLACES[0].say("a", "some words 漢字", "\ud800 half", "")
    return _PLACES[0]


def test_a_query_of_a_megabyte_is_cut_and_answered(place: Place) -> None:
    place.say("a", "the blue boat")
    assert len(place.ask("boat " * 200_000).hits) == 1
    assert place.ask(" ".join(f"word{n}" for n in range(100_000))).hits == ()


def test_where_no_file_can_be_kept_the_same_entries_are_found(place: Place) -> None:
    place.say("a", "blue boats", "Árbol café", "nothing")
    place.say("b", "a Boat of blue wood", "the Cafe is closed", agent="kate")
    place.say("c", "blue boat", agent="otto")
    for query in ("blue boat", "CAFE", "wood"):
        assert place.ask(query).hits == place.ask(query, plain=True).hits != ()
    assert len(place.ask("blue", plain=True, limit=1).hits) == 1


# -- whose --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True])
def test_transcripts_of_another_agent_layer_or_scope_are_not_found(place: Place, plain: bool) -> None:
    place.say("mine", "canary of mine")
    place.say("other", "canary of otto", agent="otto")
    place.say("ana", "canary of ana", layer="ana")
    place.say("group", "canary of a group", scope="group")

    def found(asker: Asker) -> set[str]:
        return {hit.session_id for hit in place.ask("canary", asker=asker, plain=plain).hits}

    assert found(Asker(agent="kate")) == {"mine", "group"}
    assert found(Asker(agent="kate", scopes=frozenset({"main"}))) == {"mine"}
    assert found(Asker(agent="kate", layers=frozenset({"ana"}))) == {"ana"}
    assert found(Asker(agent="kate", layers=None)) == {"mine", "group", "ana"}
    assert found(Asker(agent="otto")) == {"other"}
    assert found(Asker(agent="")) == set()
    assert found(Asker(agent="kate", layers=frozenset())) == set()


def test_a_transcript_without_a_readable_header_is_nobodys(place: Place) -> None:
    place.say("a", "canary")
    path = place.root / "sessions/a.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"agent_id":"kate"', b'"agent_id":"kate'))
    for agent in ("kate", ""):
        assert place.ask("canary", asker=Asker(agent=agent)).hits == ()


def test_a_transcript_that_was_changed_by_hand_is_taken_in_anew(place: Place) -> None:
    place.say("a", "canary of the boat")
    assert len(place.ask("canary").hits) == 1
    path = place.root / "sessions/a.jsonl"
    data = path.read_bytes()
    header = data.partition(b"\n")[0].rstrip()
    changed = data.replace(header, header.replace(b"kate", b"otto")).replace(b"canary", b"parrot")
    lines = [line.rstrip() for line in changed.splitlines()]
    path.write_bytes(b"\n".join(lines).ljust(len(data) - 1) + b"\n")
    os.utime(path, ns=(1, 1))
    assert place.ask("canary").hits == () == place.ask("parrot").hits
    assert len(place.ask("parrot", asker=Asker(agent="otto")).hits) == 1


def test_what_is_hidden_changes_no_order(place: Place) -> None:
    place.say("a", "boat boat", "lobster", "boat lobster zebra", "wine")
    before = previews(place.ask("lobster wine"))
    for n in range(30):
        place.say(f"x{n}", "lobster lobster lobster", agent="otto")
    assert previews(place.ask("lobster wine")) == before


# -- keeping up -----------------------------------------------------------------------------------------------------------------


def test_only_what_is_new_is_taken_in(place: Place) -> None:
    talk = place.begin("a")
    talk.log("user", "one")
    assert place.catch_up() == 1
    assert place.catch_up() == 0
    talk.log("user", "two")
    talk.log("assistant", "three")
    assert place.catch_up() == 2
    talk.close()
    assert place.catch_up() == 0
    assert [hit.entry for hit in place.ask("three").hits] == [2]


def test_an_index_that_grew_bit_by_bit_is_the_same_as_one_made_at_once(place: Place) -> None:
    dice = random.Random(5)
    talks = [place.begin(f"s{n}") for n in range(4)]
    words = "boat blue lobster wine sea 船 café run".split()
    for _ in range(60):
        dice.choice(talks).log("user", " ".join(dice.choices(words, k=3)))
        if dice.random() < 0.3:
            place.catch_up()
    place.catch_up()
    fresh = place.open(place.path + ".new")
    fresh.refresh(place.folder)

    def hits(which: TranscriptIndex) -> list[tuple[Quote, ...]]:
        return [which.find(place.folder, word, KATE, limit=100).hits for word in words]

    assert hits(place.index) == hits(fresh)
    fresh.close()
    for talk in talks:
        talk.close()


def test_two_indexers_at_once_take_nothing_in_twice(place: Place) -> None:
    place.say("a", *(f"boat number {n}" for n in range(50)))
    other = place.open()
    threads = [threading.Thread(target=index.refresh, args=(place.folder,)) for index in (place.index, other) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [hit.entry for hit in place.ask("boat number", limit=500).hits] == list(range(49, -1, -1))
    other.close()


def test_an_index_that_another_process_began_again_is_filled_again(place: Place) -> None:
    place.say("a", "the boat")
    assert place.catch_up() == 1
    Path(place.path).unlink()
    other = place.open()
    assert len(other.find(place.folder, "boat", KATE).hits) == 1
    assert place.catch_up() == 0
    assert len(place.index.find(place.folder, "boat", KATE).hits) == 1
    other.close()


def test_what_could_not_be_put_in_is_tried_again(place: Place) -> None:
    place.say("a", "the boat")
    place.catch_up()
    place.say("b", "another boat")
    lock = Path(f"{place.path}.lock")
    lock.unlink()
    lock.mkdir()
    assert place.catch_up() == 0
    lock.rmdir()
    assert place.catch_up() == 1


def test_names_that_are_no_sessions_do_no_harm(place: Place) -> None:
    place.say("a", "the boat")
    place.catch_up()
    strange = [place.root / "sessions" / name for name in ('a"b.jsonl', "two words.jsonl", "x.log.jsonl")]
    for path in strange:
        path.write_bytes((place.root / "sessions/a.jsonl").read_bytes())
    (place.root / "sessions/folder.jsonl").mkdir()
    assert place.catch_up() == 0
    for path in strange:
        path.unlink()
    (place.root / "sessions/folder.jsonl").rmdir()
    assert place.catch_up() == 0
    assert len(place.ask("boat").hits) == 1


def test_a_torn_tail_is_not_found_until_it_is_whole(place: Place) -> None:
    talk = place.begin("a")
    talk.log("user", "the whole boat")
    talk.abandon()
    path = place.root / "sessions/a.jsonl"
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    assert place.ask("boat").hits == ()
    with path.open("ab") as file:
        file.write(data[-20:])
    assert [hit.entry for hit in place.ask("boat").hits] == [0]


def test_a_transcript_that_is_removed_leaves_no_word_behind(place: Place) -> None:
    place.say("a", "the purple pelican")
    place.say("b", "a pelican of another colour")
    assert len(place.ask("pelican").hits) == 2
    (place.root / "sessions/a.jsonl").unlink()
    assert [hit.session_id for hit in place.ask("pelican").hits] == ["b"]
    assert not _words_in(place, "purpl")


def test_what_is_forgotten_leaves_no_word_behind(place: Place) -> None:
    place.say("a", *(f"something about boats {n}" for n in range(30)), "the purple pelican", "the end")
    assert len(place.ask("pelican").hits) == 1
    forget(place.folder, "a", lambda text: "pelican" in text, clock=place.clock)
    assert place.ask("pelican").hits == ()
    assert [hit.entry for hit in place.ask("end").hits] == [30]
    assert not _words_in(place, "purpl", "pelican")
    for path in place.root.rglob("*"):
        assert not path.is_file() or b"pelican" not in path.read_bytes(), path


def _words_in(place: Place, *words: str) -> bool:
    place.index.close()
    written = b"".join(path.read_bytes() for path in (place.root / ".anima").glob("talks.sqlite*"))
    assert b"boat" in written or b"colour" in written
    return any(word.encode() in written for word in words)


def test_no_secret_of_any_kind_is_in_the_index(place: Place) -> None:
    examples = texts_with_secrets()
    talk = place.begin("a")
    for _, text, _ in examples:
        talk.log("tool", text)
    talk.close()
    assert place.catch_up() == len(examples)
    place.index.close()
    written = Path(place.path).read_bytes()
    for _, text, inside in examples:
        for word in (word for secret in inside for word in cut(secret)):
            assert len(word) < 12 or word.encode() not in written, text


# -- the file -------------------------------------------------------------------------------------------------------------------


def test_the_file_is_for_its_owner_alone(place: Place) -> None:
    before = os.umask(0)
    try:
        place.say("a", "boat")
        place.ask("boat")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (place.root / ".anima").glob("talks.sqlite*")} == {0o600}


@pytest.mark.parametrize(
    "damage", ["garbage", "empty", "truncated", "version", "no table", "zeros", "missing", "folder link"]
)
def test_a_damaged_index_is_made_again_from_the_transcripts(place: Place, damage: str, tmp_path: Path) -> None:
    place.say("a", *(f"boat number {n}" for n in range(300)), "the pelican")
    assert len(place.ask("pelican").hits) == 1
    place.index.close()
    path = Path(place.path)
    data = path.read_bytes()
    if damage in ("version", "no table"):
        db = sqlite3.connect(path)
        db.execute("pragma user_version = 99" if damage == "version" else "drop table turn")
        db.commit()
        db.close()
    elif damage == "missing":
        path.unlink()
    elif damage == "folder link":
        (tmp_path / "outside").write_text("precious")
        path.unlink()
        path.symlink_to(tmp_path / "outside")
    else:
        path.write_bytes(
            {
                "garbage": b"not a database " * 400,
                "empty": b"",
                "truncated": data[: len(data) // 2],
                "zeros": data[:4096] + bytes(len(data) - 4096),
            }[damage]
        )
    assert [hit.entry for hit in place.ask("pelican").hits] == [300]
    again = place.ask("pelican")
    assert (again.backend, [hit.entry for hit in again.hits]) == ("fts5", [300])
    assert damage != "folder link" or (tmp_path / "outside").read_text() == "precious"


def test_an_index_with_any_page_damaged_never_raises_and_never_lies(place: Place) -> None:
    place.say("a", *(f"boat number {n} of the fleet" for n in range(400)))
    place.ask("boat")
    place.index.close()
    data, dice, said = Path(place.path).read_bytes(), random.Random(11), list[str]()
    for _ in range(25):
        broken = bytearray(data)
        for _ in range(8):
            broken[dice.randrange(100, len(broken))] ^= 1 << dice.randrange(8)
        Path(place.path).write_bytes(bytes(broken))
        index = place.open()
        index.refresh(place.folder)
        assert {row.id for row in index.rows(place.folder, KATE)} <= {"a"}
        found = index.find(place.folder, "boat 77", KATE)
        assert all(hit.session_id == "a" and hit.entry < 400 for hit in found.hits)
        said.extend(found.notes)
        index.close()
    assert any("is made again" in note for note in said)


def test_an_index_that_a_kill_left_half_written_is_no_damage_and_is_made_anew(place: Place) -> None:
    place.say("a", *(f"boat number {n} of the fleet" for n in range(400)))
    place.ask("boat")
    place.index.close()
    kept = Path(place.path)
    with closing(sqlite3.connect(kept, isolation_level=None)) as db:
        for step in (
            "pragma journal_mode=truncate",
            "pragma cache_size=1",
            "begin",
            "update spoken set text = 'x' || text",
        ):
            db.execute(step)
        left = {end: Path(f"{kept}{end}").read_bytes() for end in ("", "-journal")}
        db.execute("rollback")
    for end, data in left.items():
        Path(f"{kept}{end}").write_bytes(data)
    with closing(sqlite3.connect(f"file:{kept}?immutable=1", uri=True)) as db:
        assert db.execute("select text from spoken").fetchone() != ("boat number 0 of the fleet",)

    assert place.open().check() == "" and Path(f"{kept}-journal").read_bytes() == left["-journal"]
    found = place.open().find(place.folder, "boat 77", KATE)
    assert previews(found) == ["boat number 77 of the fleet"]
    assert any("a write was cut short" in note for note in found.notes)


def test_without_a_place_for_the_index_it_is_made_in_memory_and_said(place: Place, tmp_path: Path) -> None:
    place.say("a", "the blue boat")
    index = place.open(str(tmp_path / "nowhere/talks.sqlite"))
    assert index.refresh(place.folder) == 1
    assert [row.id for row in index.rows(place.folder, KATE)] == ["a"]
    found = index.find(place.folder, "boat", KATE)
    assert (found.backend, [hit.entry for hit in found.hits]) == ("fts5", [0])
    assert any("made in memory" in note for note in found.notes)
    assert index.find(place.folder, "🌿", KATE).hits == ()
    assert not (tmp_path / "nowhere").exists() and not Path(":memory:").exists()


def test_several_folders_share_one_index_and_not_their_sessions(place: Place) -> None:
    folders = [transcripts_in(place.store, f"agents/{name}/sessions", suffix=".log.jsonl") for name in "kl"]
    for folder, agent in zip(folders, ("kate", "lena"), strict=True):
        header = Header(id="same", timestamp=stamp(NOON), agent_id=agent)
        talk = Transcript.create(folder, header, clock=place.clock)
        talk.log("user", f"the boat of {agent}")
        talk.close()
        assert place.index.refresh(folder) == 1
    for folder, agent in zip(folders, ("kate", "lena"), strict=True):
        found = place.index.find(folder, "boat", Asker(agent=agent))
        assert previews(found) == [f"the boat of {agent}"]
        assert place.index.refresh(folder) == 0


# -- previews ---------------------------------------------------------------------------------------------------------------------


def test_a_preview_is_one_line_around_the_first_word_asked_for() -> None:
    text = "start\n" + "filler words " * 100 + "the LOBSTER sang\tloudly " + "more filler " * 100
    shown = preview(text, sought("lobsters"), max_chars=60)
    assert len(shown) == 60
    assert "LOBSTER sang loudly" in shown
    assert shown.startswith("…") and shown.endswith("…")
    assert preview("short\ntext", sought("x"), max_chars=60) == "short text"
    assert preview(text, sought("nothing"), max_chars=20) == "start filler words …"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), st.text(max_size=20), st.integers(0, 50))
def test_a_preview_is_never_longer_than_asked(text: str, query: str, size: int) -> None:
    shown = preview(text, sought(query), max_chars=size)
    assert len(shown) <= size
    assert "\n" not in shown


def test_the_words_of_a_huge_entry_are_found_as_far_as_they_are_indexed(place: Place) -> None:
    place.say("a", "filler " * 20_000 + "pelican")
    (hit,) = place.ask("pelican", max_chars=100).hits
    assert hit.preview.endswith("pelican")
