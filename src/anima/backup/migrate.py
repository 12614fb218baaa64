"""A home in another kind of store: what may be moved where, and the proof that both are one.

Promise: a home is moved over nothing, or over an earlier state of itself, never over another home or one that went on by
itself. It is moved when every file has the same digest, every byte of the ledger is there and its chain is whole, and every
version of history is the same. Nothing is written here. Not here: the archive that carries it (snapshot, restore).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from anima.errors import Damaged, Refused
from anima.ledger.verify import verify
from anima.store import Store

_APART = (".git/", ".anima/history.git/", ".anima/restored")  # compared as versions; what a restore says of itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """What was moved and is the same in both places; `was_there` says that all of it stood there already."""

    source: str
    target: str
    files: int
    bytes: int
    records: int
    revisions: int
    was_there: bool = False


def follows(old: Store, new: Store) -> bool:
    """Whether an earlier state of this home stands at the other place; False where nothing does. Raises Refused."""
    if not new.begun:
        if any(True for _ in new.documents.list_all()):
            raise Refused(f"{new.name}: another home stands there; nothing was written", rule="another-home")
        return False
    if new.key.id != old.key.id:
        raise Refused(f"{new.name}: another home stands there; nothing was written", rule="another-home")
    tip = new.ledger.tip
    if not old.ledger.holds(tip.n, tip.hash):
        hint = "migrate it the other way, or to a new place"
        raise Refused(f"{new.name} was written to since it was moved; nothing was written", rule="went-on", hint=hint)
    return True


def compared(old: Store, new: Store) -> Migration:
    """What is the same in both. Raises Damaged where anything differs."""
    files, theirs = _files(old), _files(new)
    if differ := sorted(path for path in {*files, *theirs} if files.get(path) != theirs.get(path)):
        raise _differs(new, f"{differ[0]} and {len(differ) - 1} more" if differ[1:] else differ[0])
    if old.log.read(0, old.log.size()) != new.log.read(0, new.log.size()):
        raise _differs(new, "the ledger")
    found = verify(new.log, key=new.key, anchors=new.anchors())
    if not found.ok:
        raise _differs(new, "the chain")
    revisions, versions = _versions(old)
    if (revisions, versions) != _versions(new):
        raise _differs(new, "history")
    size = sum(size for size, _ in files.values())
    return Migration(
        source=old.name, target=new.name, files=len(files), bytes=size, records=found.records, revisions=revisions
    )


def _files(store: Store) -> dict[str, tuple[int, str]]:
    seen = store.whole.survey()
    return {path: (file.size, file.sha256) for path, (file, _) in seen.items() if not path.startswith(_APART)}


def _versions(store: Store) -> tuple[int, list[tuple[str, str]]]:
    """How many revisions there are, and the digest of every version and of what each revision says."""
    with store.kept_history() as history:
        every = list(history.versions()) if history is not None else []
    digests = [
        (path or "", hashlib.sha256(data.strip() if path is None else data).hexdigest()) for _, path, data in every
    ]
    return sum(path is None for _, path, _ in every), sorted(digests)


def _differs(new: Store, what: str) -> Damaged:
    hint = "run it again: what is the same is not written again, and the first home is as it was"
    return Damaged(f"{new.name} is not the same: {what} differs", hint=hint)
