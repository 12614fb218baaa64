"""Makes the example homes of the present format: run once for each released format, and never again.

    python tests/formats/make.py 1

Each is stored as plain files under `tests/formats/<format>/<name>/home`; what is derived (index, list of sessions) is
left out, and the history is packed into `history.tar`, because a repository cannot hold another one. `expected.json` says
what that version showed of the home: `tests/upkeep/test_formats.py` asks every later version for the same.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from anima import Home, Runtime, Scope
from anima.testing import Clock, dice

HERE = Path(__file__).resolve().parent
HOMES = HERE.parent / "homes"
HISTORIES = (".git", ".anima/history.git")
DERIVED = ("index.sqlite", "talks.sqlite", "lock", "sessions.json", "dreaming", "indexing")
SETTINGS = {"owner": ["luis"]}


def opened(folder: Path, config: Path, **more: str) -> Home:
    settings = {**SETTINGS, **{key.replace("_", "."): value for key, value in more.items()}}
    return Home.open(folder, env={"ANIMA_CONFIG": str(config)}, clock=Clock(), dice=dice(), settings=settings)


def lived_in(home: Home) -> None:
    """A little of everything that leaves a trace."""
    home.remember("Ana uses a Samsung, not an iPhone", section="People")
    home.remember("The safe opens with 4-2-9")
    home.note("Reviewed the plan for the boat")
    home.write("notes/windows.md", "# Windows\r\n\r\n- ends its lines like this\r\n")
    home.write("notes/mark.md", "\ufeff# With a mark\n\n- and no last line end")
    home.write("notes/empty.md", "")
    home.write("notes/Größe.md", "# Größe\n\n- ein Dokument mit Umlaut\n")
    home.write("users/ana/MEMORY.md", "# Memory\n\n- Ana's own line\n")
    Path(home.root, "notes/windows.md").write_bytes(b"# Windows\r\n\r\n- changed from outside\r\n")
    home.append("notes/windows.md", "- and then through us\n")
    home.forget(text="the safe opens with 4-2-9")
    _talks(home)
    _recalls(home)
    home.dream()


def _talks(home: Home) -> None:
    with home.session(scope=Scope.MAIN, channel="telegram", sender="luis") as session:
        session.log("user", "Which phone does Ana use?")
        session.log("assistant", "A Samsung.")
        session.call("memory_write", {"target": "daily_log", "content": "Luis asked about phones"})
        session.taint("web")
        session.call("memory_write", {"target": "memory", "content": "The harbour closes at six", "section": "Places"})
    with home.session(scope=Scope.GROUP, channel="telegram", sender="ana") as session:
        session.log("user", "Hello from the group")
        session.call("memory_write", {"target": "notes/wish.md", "content": "- a wish\n"})


def _recalls(home: Home) -> None:
    home.append(f"{home.layout.daily}/2026-05-01.md", "- [09:00] Ana is allergic to peanuts\n")
    digest = home.books.key.line("- [09:00] Ana is allergic to peanuts")
    hits = [{"path": f"{home.layout.daily}/2026-05-01.md", "lines": [digest], "rank": 1, "score": 0.9}]
    for day in ("2026-05-02", "2026-05-03", "2026-05-04"):
        home.books.note("recall", {"query": day, "hits": hits, "session": "s", "scope": "main", "day": day})


def shown(home: Home) -> dict[str, Any]:
    """What every later version must show of this home, too."""
    asker = home.transcripts.owner()
    sessions = [row.id for row in home.transcripts.rows(asker)]
    return {
        "dialect": home.dialect,
        "prompts": {
            scope: home.prompt(scope=scope, runtime=Runtime(host="here")).text.replace(home.root, "HOME")
            for scope in ("main", "group", "heartbeat")
        },
        "documents": {
            entry.path: hashlib.sha256(Path(home.root, entry.path).read_bytes()).hexdigest()
            for entry in home.list_all()
            if entry.path.endswith(".md")
        },
        "pending": {one.id: one.diff for one in home.pending()},
        "sessions": {
            id: [turn.content for turn in home.transcripts.read(id, asker).entries] for id in sorted(sessions)
        },
        "found": sorted({str(hit.path) for hit in home.search("Ana peanuts", scope=Scope.MAIN).hits}),
        "forgotten": len(home.writing.forgotten),
        "records": home.audit().records,
        "distrusted": home.books.view.distrusted(),
        "revisions": len(home.history(limit=1_000)),
    }


def packed(folder: Path, to: Path) -> None:
    with tarfile.open(to / "history.tar", "w") as tar:
        for place in HISTORIES:
            if (folder / place).is_dir():
                tar.add(folder / place, arcname=place, filter=_anonymous)
    out = (".git", "history.git", "stage", *DERIVED)
    shutil.copytree(folder, to / "home", ignore=lambda _, names: [n for n in names if n.startswith(out)])


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = 1_778_268_600
    return info


def main() -> None:
    number = sys.argv[1]
    for name in ("anima", "openclaw", "agentscope"):
        to = HERE / number / name
        to.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as place:
            folder, config = Path(place, "home"), Path(place, "config")
            if name == "anima":
                Home.create(folder, name="Aria", env={"ANIMA_CONFIG": str(config)}, clock=Clock(), dice=dice()).close()
            else:
                shutil.copytree(HOMES / name, folder)
            with opened(folder, config) as home:
                lived_in(home)
            with opened(folder, config, gate_preset="open") as home, home.session(scope=Scope.MAIN) as session:
                session.taint("web")
                session.call("memory_write", {"target": "memory", "content": "A page said the mill is for sale"})
            with opened(folder, config) as home:
                expected = shown(home)
                home.books.history.pack()
            packed(folder, to)
        (to / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
