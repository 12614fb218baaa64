"""The documents of a home as a tree: folders, kinds, and what in them is not trusted.

Promise: one walk; what is too much for a page is left out and counted. Transcripts have a page of their own and are only
counted. Not here: what a document says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from anima.errors import HomeError
from anima.home import Home
from anima.layout.table import Policy
from anima.model import DocPath, Entry, fold
from anima.web.marks import doubtful

MOST = 1_500  # documents on one page
_TEXTS = ("md", "txt", "toml", "json", "jsonl", "yaml", "yml", "csv")
_KINDS = {
    "user": "about you",
    "agents": "guide",
    "note": "note",
    "user-layer": "another person’s",
    "config": "settings",
    "diary": "dream diary",
    "alternate-soul": "other soul",
    "memory": "memory",
    "daily": "daily log",
}


@dataclass(slots=True, kw_only=True)
class Node:
    """A folder or a document of the tree, as a page draws it."""

    name: str
    path: str
    is_folder: bool
    kind: str = ""
    is_text: bool = True
    size: int = 0
    time: datetime | None = None
    doubt: int = 0
    count: int = 0  # documents beneath
    is_open: bool = False
    children: list[Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Browsed:
    nodes: list[Node]
    documents: int
    left_out: int
    talks: int


def browse(home: Home, folder: str = "") -> Browsed:
    """The tree beneath a folder. Raises NoSuchDocument or BadPath for what is none."""
    every = home.list_all(folder)
    entries = [entry for entry in every if not _is_talk(home, entry.path)]
    top = Node(name="", path=folder, is_folder=True)
    folders = {folder: top}
    view = home.books.provenance if home.books.begun else None
    for entry in entries[:MOST]:
        path = DocPath.parse(entry.path)
        doubt = _doubt(home, path) if view and view.has_doubt(path) else 0
        _folder(folders, path.parent, folder).children.append(_leaf(home, entry, path, doubt))
    _settle(home, top)
    return Browsed(
        nodes=top.children,
        documents=len(entries),
        left_out=max(0, len(entries) - MOST),
        talks=len(every) - len(entries),
    )


def kind_of(home: Home, path: DocPath) -> str:
    """What a document is, in a word or two."""
    role = home.layout.row_of(path).role
    if role == "daily" and home.layout.date_of(path) is None:
        return "note"
    return _KINDS.get(role, role.replace("-", " "))


def _doubt(home: Home, path: DocPath) -> int:
    try:
        return doubtful(home, home.read(path))
    except HomeError:
        return 0


def _is_talk(home: Home, path: str) -> bool:
    row = home.layout.row_of(DocPath.parse(path))
    return row.role == "sessions" or (row.policy is Policy.CLOSED and row.kind == "session")


def _leaf(home: Home, entry: Entry, path: DocPath, doubt: int) -> Node:
    is_text = path.key.rpartition(".")[2] in _TEXTS
    return Node(
        name=path.name,
        path=entry.path,
        is_folder=False,
        kind=kind_of(home, path) if is_text else "file",
        is_text=is_text,
        size=entry.size,
        time=entry.time,
        doubt=doubt,
        count=1,
    )


def _folder(folders: dict[str, Node], path: str, top: str) -> Node:
    """The node of a folder, made with those above it when it is new."""
    if path not in folders:
        above, _, name = path.rpartition("/")
        made = Node(name=name, path=path, is_folder=True)
        _folder(folders, above if len(above) >= len(top) else top, top).children.append(made)
        folders[path] = made
    return folders[path]


def _settle(home: Home, node: Node) -> None:
    """Counts what is beneath, puts logs by month with the newest first, and opens what is small."""
    for child in node.children:
        if child.is_folder:
            _settle(home, child)
    node.count, node.doubt = sum(child.count for child in node.children), sum(child.doubt for child in node.children)
    if fold(node.path) == fold(home.layout.daily):
        node.children = _by_month(home, node)
    node.is_open = node.count <= 12 or fold(node.path) == fold(home.layout.daily)
    node.children.sort(key=lambda child: child.is_folder)  # stable: documents first, then folders


def _by_month(home: Home, node: Node) -> list[Node]:
    dated = [not child.is_folder and home.layout.date_of(DocPath.parse(child.path)) for child in node.children]
    logs = [child for child, day in zip(node.children, dated, strict=True) if day]
    others = [child for child, day in zip(node.children, dated, strict=True) if not day]
    months: dict[str, Node] = {}
    for log in reversed(logs):
        month = log.name[:7]
        held = months.setdefault(
            month, Node(name=month, path=f"{node.path}#{month}", is_folder=True, is_open=not months)
        )
        held.children.append(log)
        held.count, held.doubt = held.count + 1, held.doubt + log.doubt
    if len(months) == 1:
        return logs[::-1] + others
    return [*months.values(), *others]
