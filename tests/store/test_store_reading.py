"""Reading a folder: beneath its own descriptor, regular files only, no link followed, whatever happens meanwhile."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anima import Home
from anima.errors import BadPath, BadText, Damaged, HomeError, NoSuchDocument, NoSuchHome, Refused
from anima.model import DocPath, Document, digest_of
from anima.store.folder import MAX_BYTES, Folder
from anima.store.safe_open import open_beneath, open_folder, open_regular

CANARY = "CANARY-outside-5d1c"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a few documents, beside a folder that is none of its business."""
    outside = tmp_path / "outside"
    (outside / "memory").mkdir(parents=True)
    for name in ("MEMORY.md", "memory/2026-05-08.md", f"{CANARY}.md"):
        (outside / name).write_text(CANARY, encoding="utf-8")
    inside = tmp_path / "home"
    (inside / "memory" / "topics").mkdir(parents=True)
    (inside / "MEMORY.md").write_text("inside", encoding="utf-8")
    (inside / "memory" / "2026-05-08.md").write_text("a day", encoding="utf-8")
    (inside / "memory" / "topics" / "boat.md").write_text("a boat", encoding="utf-8")
    return inside


@pytest.fixture
def store(root: Path) -> Iterator[Folder]:
    opened = Folder(root)
    yield opened
    opened.close()


def text_of(store: Folder, path: str) -> str:
    return store.read(DocPath.parse(path)).text


# -- what is read ----------------------------------------------------------------------------------------------------------


def test_a_document_is_its_exact_text_with_digest_and_time(root: Path, store: Folder) -> None:
    raw = "\ufeff# Été\r\n\r\nno newline at the end".encode()
    (root / "x.md").write_bytes(raw)
    os.utime(root / "x.md", (1_000_000_000, 1_000_000_000))
    document = store.read(DocPath.parse("x.md"))

    assert document.text.encode() == raw
    assert (document.path.text, document.time.isoformat()) == ("x.md", "2001-09-09T01:46:40+00:00")
    assert len(document.digest) == 64


def test_a_change_on_disk_is_seen_by_the_next_reading(root: Path, store: Folder) -> None:
    for text in ("one", "two", "six", "ten"):  # of one length, and written within one tick of the clock
        (root / "x.md").write_text(text, encoding="utf-8")
        assert text_of(store, "x.md") == text


def test_a_change_of_a_long_document_is_seen_too_and_its_digest_is_that_of_its_bytes(root: Path, store: Folder) -> None:
    long = "ü" * 1_000_000
    for text in (long, long, f"a{long[1:]}", long, f"{long[1:]}a"):  # the last two of one size in bytes
        (root / "x.md").write_text(text, encoding="utf-8")
        document = store.read(DocPath.parse("x.md"))
        assert document.text == text
        assert document.digest == digest_of(text) == digest_of("".join(list(text))) == sha256(text.encode()).hexdigest()
    (root / "x.md").write_bytes(long.encode()[:-1])
    with pytest.raises(BadText):
        store.read(DocPath.parse("x.md"))
    assert digest_of(None) == ""


def test_a_text_that_was_kept_goes_when_its_file_is_replaced(root: Path, store: Folder) -> None:
    (root / "x.md").write_text("old", encoding="utf-8")
    os.utime(root / "x.md", (1_000_000_000, 1_000_000_000))
    assert [text_of(store, "x.md"), text_of(store, "x.md")] == ["old", "old"]

    (root / "y.md").write_text("new", encoding="utf-8")
    os.utime(root / "y.md", (1_000_000_000, 1_000_000_000))
    (root / "y.md").rename(root / "x.md")

    assert text_of(store, "x.md") == "new"


def test_reading_changes_nothing_on_disk(root: Path, store: Folder) -> None:
    def state() -> list[tuple[str, int, int]]:
        return [(str(p), p.stat().st_mtime_ns, p.stat().st_ctime_ns) for p in sorted(root.rglob("*"))]

    before = state()
    store.read(DocPath.parse("memory/2026-05-08.md"))
    list(store.list_all())
    store.exists(DocPath.parse("nope.md"))

    assert state() == before


def test_a_hard_link_is_a_file_like_any_other(root: Path, store: Folder) -> None:
    os.link(root / "MEMORY.md", root / "COPY.md")

    assert text_of(store, "COPY.md") == "inside"
    assert store.exists(DocPath.parse("COPY.md"))


def test_an_empty_file_is_a_document(root: Path, store: Folder) -> None:
    (root / "empty.md").touch()

    assert text_of(store, "empty.md") == ""


@pytest.mark.parametrize("path", ["nope.md", "nope/x.md", "memory/nope.md", "MEMORY.md/x.md", "memory/topics/no/x.md"])
def test_what_is_not_there_is_not_there(store: Folder, path: str) -> None:
    with pytest.raises(NoSuchDocument) as caught:
        text_of(store, path)

    assert caught.value.path == path
    assert not store.exists(DocPath.parse(path))


# -- what is no text -------------------------------------------------------------------------------------------------------


def test_a_file_of_fifty_megabytes_is_a_named_error_with_its_size(root: Path, store: Folder) -> None:
    with (root / "huge.md").open("wb") as file:
        file.truncate(50 * 2**20)

    with pytest.raises(BadText, match="52,428,800 bytes") as caught:
        text_of(store, "huge.md")
    assert caught.value.hint
    assert store.exists(DocPath.parse("huge.md"))


def test_the_largest_file_that_is_read_is_read_whole(root: Path, store: Folder) -> None:
    (root / "large.md").write_bytes(b"x" * MAX_BYTES)
    (root / "larger.md").write_bytes(b"x" * (MAX_BYTES + 1))

    assert len(text_of(store, "large.md")) == MAX_BYTES
    with pytest.raises(BadText):
        text_of(store, "larger.md")


@pytest.mark.parametrize(
    ("raw", "byte"),
    [
        (b"abc\xff", 4),
        (b"\xff\xfeh\x00i\x00", 1),
        (b"\x80", 1),
        (b"ok \xc3", 4),
        (b"\xed\xa0\x80", 1),
        (b"\xc0\xaf", 1),
        (b"\xf4\x90\x80\x80", 1),
        ("naïve".encode("latin-1"), 3),
    ],
)
def test_what_is_not_utf_8_is_a_named_error_with_the_first_wrong_byte(
    root: Path, store: Folder, raw: bytes, byte: int
) -> None:
    (root / "x.md").write_bytes(raw)

    with pytest.raises(BadText, match=f"not UTF-8 text \\(byte {byte}\\)"):
        text_of(store, "x.md")
    assert (root / "x.md").read_bytes() == raw


@settings(max_examples=60, deadline=None)
@given(raw=st.binary(max_size=40))
def test_any_bytes_are_a_document_that_gives_them_back_or_a_named_error(
    raw: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    (folder / "x.md").write_bytes(raw)
    store = Folder(folder)
    try:
        assert text_of(store, "x.md").encode() == raw
    except BadText:
        with pytest.raises(UnicodeDecodeError):
            raw.decode("utf-8")
    finally:
        store.close()


# -- what is no regular file ---------------------------------------------------------------------------------------------


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's path may be no longer than 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _device(path: Path) -> None:
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root can make a device")


def _link_to_outside(path: Path) -> None:
    path.symlink_to(path.parent.parent / "outside" / "MEMORY.md")


def _link_to_inside(path: Path) -> None:
    path.symlink_to("MEMORY.md")


def _link_to_nothing(path: Path) -> None:
    path.symlink_to("nope")


def _link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def _link_to_a_process(path: Path) -> None:
    path.symlink_to("/proc/self/environ")


NO_FILES: list[Callable[[Path], None]] = [
    _folder,
    _pipe,
    _socket,
    _device,
    _link_to_outside,
    _link_to_inside,
    _link_to_nothing,
    _link_to_itself,
    _link_to_a_process,
]


@pytest.mark.parametrize("make", NO_FILES)
def test_what_is_no_regular_file_is_a_named_error_at_once(
    root: Path, store: Folder, make: Callable[[Path], None]
) -> None:
    make(root / "x.md")

    with pytest.raises(HomeError) as caught:  # a pipe nobody writes to would block here for ever
        text_of(store, "x.md")
    assert not isinstance(caught.value, NoSuchDocument)
    assert not store.exists(DocPath.parse("x.md"))


@pytest.mark.parametrize("make", [m for m in NO_FILES if m is not _folder])
def test_what_is_no_regular_file_is_not_listed_but_said(
    root: Path, store: Folder, make: Callable[[Path], None]
) -> None:
    make(root / "x.md")

    assert "x.md" not in [entry.path for entry in store.list()]
    assert [name for name, why in store.strange() if why] == ["x.md"]


# -- links on the way ----------------------------------------------------------------------------------------------------


def test_a_link_to_a_home_is_followed_once_and_the_home_is_where_it_really_is(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    store = Folder(link)
    link.unlink()
    link.symlink_to(root.parent / "outside")

    assert store.root == str(root)
    assert text_of(store, "MEMORY.md") == "inside"
    store.close()


@pytest.mark.parametrize("target", ["../outside/memory", "memory", "memory/topics"])
@pytest.mark.parametrize("path", ["linked/2026-05-08.md", "linked/topics/boat.md", "linked/boat.md", "linked/x/y.md"])
def test_a_folder_that_is_a_link_is_never_gone_through(root: Path, store: Folder, target: str, path: str) -> None:
    (root / "linked").symlink_to(target)

    with pytest.raises(HomeError):
        text_of(store, path)
    assert not store.exists(DocPath.parse(path))
    with pytest.raises(HomeError):
        store.list("linked")
    assert not [entry for entry in store.list_all() if entry.path.startswith("linked")]


def test_a_link_deep_inside_is_never_gone_through(root: Path, store: Folder) -> None:
    (root / "memory" / "topics" / "out").symlink_to(root.parent / "outside")

    for path in ("memory/topics/out/MEMORY.md", "memory/topics/out/memory/2026-05-08.md", "memory/topics/out"):
        with pytest.raises(HomeError):
            text_of(store, path)
    assert CANARY not in repr(list(store.list_all()))


def test_the_home_stays_the_folder_that_was_opened(root: Path, store: Folder) -> None:
    root.rename(root.parent / "moved")
    (root.parent / "outside").rename(root)

    assert text_of(store, "MEMORY.md") == "inside"
    assert f"{CANARY}.md" not in [entry.path for entry in store.list()]


_SWAP = """
import os, sys
home, count = sys.argv[1], 0
os.chdir(home)
while True:
    for a, b in (("memory", "link-to-folder"), ("x.md", "link-to-file")):
        os.rename(a, "aside")
        os.rename(b, a)
        os.rename("aside", b)
    count += 1
    if count == 100:
        print("swapping", flush=True)
"""


@contextmanager
def swapping(root: Path) -> Iterator[None]:
    """While this lasts, a process keeps putting links in the place of a folder and of a file, and takes them away."""
    (root / "x.md").write_text("inside", encoding="utf-8")
    (root / "link-to-folder").symlink_to(root.parent / "outside" / "memory")
    (root / "link-to-file").symlink_to(root.parent / "outside" / "MEMORY.md")
    other = subprocess.Popen([sys.executable, "-c", _SWAP, str(root)], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == b"swapping\n"
        yield
        assert other.poll() is None
    finally:
        other.kill()
        other.communicate()


def at_least(turns: int, enough: Callable[[], bool]) -> Iterator[int]:
    """So many turns, and more until there is enough: a race that somebody else holds up is only longer."""
    turn = 0
    while turn < turns or not enough():
        yield turn
        turn += 1


def test_swapping_links_in_while_we_read_leads_nowhere(root: Path) -> None:
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    read: set[bytes] = set()
    with swapping(root):
        for _ in at_least(5_000, lambda: len(read) >= 2):
            for path in ("memory/2026-05-08.md", "x.md"):
                try:
                    file = open_beneath(fd, path, os.O_RDONLY)
                except OSError:
                    continue
                read.add(os.read(file, 100))
                os.close(file)
    os.close(fd)

    assert read == {b"a day", b"inside"}


def test_swapping_links_in_while_the_store_reads_and_lists_leads_nowhere(root: Path, store: Folder) -> None:
    read: set[str] = set()
    listed: set[str] = set()
    with swapping(root):
        for _ in at_least(2_000, lambda: len(read) >= 2 and len(listed) >= 2):
            for path in ("memory/2026-05-08.md", "x.md", "MEMORY/2026-05-08.MD"):
                try:
                    read.add(text_of(store, path))
                except HomeError:
                    continue
            try:
                listed.update(entry.path for entry in store.list("memory"))
            except HomeError:
                continue

    assert read == {"a day", "inside"}
    assert listed == {"memory/2026-05-08.md", "memory/topics"}


# -- opening beneath a folder ---------------------------------------------------------------------------------------------


def answer(opening: Callable[[int, str, int], int], fd: int, path: str) -> bytes | int:
    try:
        file = opening(fd, path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return error.errno or 0
    try:
        return os.read(file, 100)
    except IsADirectoryError:
        return b"a folder"
    finally:
        os.close(file)


def plainly(fd: int, path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, dir_fd=fd)


@pytest.mark.parametrize(
    "path",
    [
        "MEMORY.md",
        "memory/2026-05-08.md",
        "memory/topics/boat.md",
        "memory",
        "memory/topics",
        "nope.md",
        "memory/nope.md",
        "nope/x.md",
        "MEMORY.md/x.md",
        "memory/2026-05-08.md/x",
        "file-link",
        "memory/file-link",
        "memory/pipe/x",
        "memory/" + "x" * 256,
    ],
)
def test_where_no_link_is_on_the_way_the_answer_is_the_systems(root: Path, path: str) -> None:
    (root / "file-link").symlink_to("MEMORY.md")
    (root / "memory" / "file-link").symlink_to("2026-05-08.md")
    os.mkfifo(root / "memory" / "pipe")
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)

    assert answer(open_beneath, fd, path) == answer(plainly, fd, path)
    os.close(fd)


@pytest.mark.parametrize("path", ["folder-link/2026-05-08.md", "memory/up/MEMORY.md", "itself/x.md"])
def test_a_link_on_the_way_is_called_a_link(root: Path, path: str) -> None:
    (root / "folder-link").symlink_to("memory")
    (root / "memory" / "up").symlink_to("..")
    (root / "itself").symlink_to("itself")
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)

    assert answer(open_beneath, fd, path) == errno.ELOOP
    os.close(fd)


@pytest.mark.parametrize("path", ["../outside/MEMORY.md", "memory/../../outside/MEMORY.md", "memory/../MEMORY.md"])
def test_an_opening_never_goes_up(root: Path, path: str) -> None:
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)

    assert answer(open_beneath, fd, path) == errno.EXDEV
    os.close(fd)


def test_nothing_stays_open_when_an_opening_fails(root: Path) -> None:
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    (root / "memory" / "link").symlink_to("..")
    before = len(os.listdir("/proc/self/fd"))
    for path in ("memory/nope", "memory/link/x", "memory/topics", "memory/topics/boat.md/x", "memory/topics/nope"):
        answer(open_beneath, fd, path)
        with pytest.raises(OSError):
            open_regular(fd, path)
    os.close(open_folder(fd, "memory/topics"))

    assert len(os.listdir("/proc/self/fd")) == before
    os.close(fd)


def test_whoever_lists_the_home_sees_all_of_it_while_another_is_at_it(store: Folder) -> None:
    every = store.raw_names("")

    with store.inside("") as one, os.scandir(one) as names:
        next(names)

        assert store.raw_names("") == every
        assert [path for path, _ in store.walk() if "/" not in path] == sorted(every)
        assert len(store.list()) == len([name for name in every if not name.startswith(".")])


# -- names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["memory.md", "Memory.MD", "ＭＥＭＯＲＹ.md", "MEMORY\ufe0f.md"])
def test_a_document_is_found_under_any_spelling_of_its_name(store: Folder, spelling: str) -> None:
    document = store.read(DocPath.parse(spelling))

    assert (document.text, document.path.text) == ("inside", "MEMORY.md")
    assert store.actual(DocPath.parse(spelling)) == "MEMORY.md"
    assert store.exists(DocPath.parse(spelling))


@pytest.mark.parametrize("on_disk", ["NFC", "NFD"])
@pytest.mark.parametrize("asked", ["NFC", "NFD"])
def test_a_document_is_found_in_either_unicode_form(root: Path, store: Folder, on_disk: str, asked: str) -> None:
    folder, name = (unicodedata.normalize(on_disk, text) for text in ("mémoire", "été.md"))
    (root / folder).mkdir()
    (root / folder / name).write_text("summer", encoding="utf-8")

    assert text_of(store, unicodedata.normalize(asked, "mémoire/été.md")) == "summer"
    assert text_of(store, unicodedata.normalize(asked, "MÉMOIRE/ÉTÉ.MD")) == "summer"
    assert [entry.path for entry in store.list(unicodedata.normalize(asked, "Mémoire"))] == [f"{folder}/{name}"]


def test_the_exact_name_wins_where_two_fold_alike(root: Path, store: Folder) -> None:
    (root / "memory.md").write_text("the other", encoding="utf-8")

    assert text_of(store, "MEMORY.md") == "inside"
    assert text_of(store, "memory.md") == "the other"
    assert text_of(store, "Memory.md") == "inside"


def test_a_folder_is_listed_with_folders_first_and_nothing_hidden(root: Path, store: Folder) -> None:
    (root / ".anima").mkdir()
    (root / ".git").mkdir()
    (root / ".DS_Store").touch()
    (root / "a.txt").write_text("12345", encoding="utf-8")
    entries = store.list()

    assert [(entry.path, entry.is_folder, entry.size) for entry in entries] == [
        ("memory", True, 0),
        ("MEMORY.md", False, 6),
        ("a.txt", False, 5),
    ]
    assert store.strange() == ()


def test_every_file_beneath_a_folder_is_listed(store: Folder) -> None:
    assert [entry.path for entry in store.list_all()] == [
        "MEMORY.md",
        "memory/2026-05-08.md",
        "memory/topics/boat.md",
    ]
    assert [entry.name for entry in store.list_all("memory/topics")] == ["boat.md"]


@pytest.mark.parametrize("name", ["con.md", "a\nb.md", "a:b.md", "trailing.", "a\u202eb.md", " blank.md", "ＮＵＬ.md"])
def test_a_name_no_path_can_hold_is_left_alone_and_said(root: Path, store: Folder, name: str) -> None:
    (root / name).touch()

    assert len(list(store.list_all())) == 3
    assert [said for said, why in store.strange() if why] == [name]


def test_a_name_that_is_not_utf_8_is_left_alone_and_said(root: Path, store: Folder) -> None:
    with open(os.open(os.fsencode(root) + b"/caf\xe9.md", os.O_CREAT | os.O_WRONLY), "w", encoding="utf-8") as file:
        file.write("coffee")

    assert len(list(store.list_all())) == 3
    assert [why for _, why in store.strange()] == ["a path cannot hold the invisible character U+DCE9"]


def test_a_file_is_no_folder_and_a_missing_folder_is_missing(store: Folder) -> None:
    with pytest.raises(BadPath, match="a file, not a folder"):
        store.list("MEMORY.md")
    with pytest.raises(NoSuchDocument):
        store.list("nope")
    with pytest.raises(BadPath):
        store.list("../outside")


# -- whose folder it is ----------------------------------------------------------------------------------------------------


def test_what_is_no_folder_is_no_home(root: Path) -> None:
    with pytest.raises(NoSuchHome, match="no such folder"):
        Folder(root / "nope")
    with pytest.raises(NoSuchHome, match="this is a file"):
        Folder(root / "MEMORY.md")
    (root / "itself").symlink_to("itself")
    with pytest.raises(NoSuchHome):
        Folder(root / "itself")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_users_is_refused_with_a_sentence(root: Path) -> None:
    os.chown(root, 65534, 65534)

    with pytest.raises(Refused, match="belongs to another user") as caught:
        Folder(root)
    assert caught.value.rule == "foreign-owner"


@contextmanager
def an_ordinary_users_folder() -> Iterator[Path]:
    """A folder of somebody who may not read everything; root becomes that somebody for a while."""
    ordinary = 65534 if os.geteuid() == 0 else os.geteuid()
    with tempfile.TemporaryDirectory() as made:
        os.chown(made, ordinary, -1)
        os.seteuid(ordinary)
        try:
            yield Path(made)
        finally:
            os.seteuid(os.getuid())


def test_what_the_system_does_not_let_us_read_is_a_named_error() -> None:
    with an_ordinary_users_folder() as folder:
        (folder / "MEMORY.md").touch(mode=0o000)
        (folder / "memory").mkdir(mode=0o000)
        store = Folder(folder)
        with pytest.raises(Damaged, match="does not let us read it"):
            text_of(store, "MEMORY.md")
        with pytest.raises(Damaged):
            text_of(store, "memory/2026-05-08.md")
        with pytest.raises(Damaged):
            store.list("memory")
        store.close()
        (folder / "memory").rmdir()


def test_a_document_says_nothing_of_where_the_home_is(store: Folder) -> None:
    document: Document = store.read(DocPath.parse("MEMORY.md"))
    messages = []
    for path in ("nope.md", "memory", "MEMORY.md/x"):
        with pytest.raises(HomeError) as caught:
            text_of(store, path)
        messages.append(str(caught.value) + str(caught.value.hint))

    assert store.root not in repr(document) + "".join(messages)


def test_a_home_that_may_only_be_read_is_searched_and_tells_of_its_past(tmp_path: Path) -> None:
    def found(place: Path) -> list[str]:
        with Home.open(place) as home:
            hits = home.search("Samsung", scope="main")
            why = home.past.why("MEMORY.md", hits[0].start_line).sentence[:14]
            return [
                hits[0].text,
                home.sessions.find("boiler").hits[0].preview,
                why,
                home.past.log()[0].subject,
                *hits.notes,
            ]

    def made(place: Path) -> Path:
        with Home.create(place, name="Aria") as home:
            home.remember("Ana uses a Samsung", section="People")
            with home.session(scope="main") as session:
                session.log("user", "the boiler is cold")
        return place

    expected = found(made(tmp_path / "ours"))  # and all is imported that an ordinary user may not read
    with an_ordinary_users_folder() as folder:
        place = made(folder / "theirs")
        try:
            for path in [place, *place.rglob("*")]:
                path.chmod(0o555 if path.is_dir() else 0o444)
            before = sorted(place.rglob("*"))
            assert found(place) == expected and sorted(place.rglob("*")) == before
            with Home.open(place) as home:
                for write in (lambda: home.remember("Ana has a cat"), home.dream, lambda: home.forget(text="Samsung")):
                    with pytest.raises(Damaged, match="this home may only be read; nothing was changed"):
                        write()
        finally:
            for path in [place, *place.rglob("*")]:
                path.chmod(0o755)


def test_a_home_whose_index_may_only_be_read_is_searched(tmp_path: Path) -> None:
    def found(place: Path) -> tuple[list[str], tuple[str, ...]]:
        with Home.create(place) as home:
            home.write("MEMORY.md", "- Ana uses a Samsung\n")
            home.search("Samsung", scope="main")
        (place / ".anima" / "index.sqlite").chmod(0o400)
        (place / "MEMORY.md").write_text("- Ana uses a Nokia\n", encoding="utf-8")
        with Home.open(place) as home:
            answer = home.search("Nokia", scope="main")
            return [hit.text for hit in answer.hits], answer.notes

    expected = found(tmp_path / "ours")  # and all is imported that an ordinary user may not read
    assert expected[0]
    with an_ordinary_users_folder() as folder:
        assert found(folder / "theirs") == expected


def test_a_ledger_that_may_only_be_read_is_written_to_once_it_may_be(tmp_path: Path) -> None:
    Home.create(tmp_path / "ours").close()  # all is imported that an ordinary user may not read
    with an_ordinary_users_folder() as folder:
        Home.create(folder / "theirs").close()
        ledger = folder / "theirs" / ".anima" / "ledger.jsonl"
        ledger.chmod(0o400)
        with Home.open(folder / "theirs") as home:
            for _ in range(2):
                with pytest.raises(Damaged, match="this home may only be read; nothing was changed"):
                    home.append("notes.md", "- one\n")
                with home.site.store.lease("another"):
                    pass
            ledger.chmod(0o600)

            assert home.append("notes.md", "- one\n").status == "written"


def test_an_agent_finds_what_stands_in_a_folder_of_files_that_may_only_be_read(tmp_path: Path) -> None:
    def found(place: Path) -> object:
        with Home.open(place) as home, home.session(scope="main") as session:
            return session.call("memory_search", {"query": "Samsung", "corpus": "memory"})["hits"]

    def made(place: Path) -> Path:
        place.mkdir()
        (place / "MEMORY.md").write_text("- Ana uses a Samsung\n", encoding="utf-8")
        return place

    expected = found(made(tmp_path / "ours"))
    assert expected
    with an_ordinary_users_folder() as folder:
        place = made(folder / "theirs")
        place.chmod(0o500)
        try:
            assert found(place) == expected and [path.name for path in place.iterdir()] == ["MEMORY.md"]
        finally:
            place.chmod(0o700)
