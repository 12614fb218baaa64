"""What the processes of a crowd do in one home, for test_finding: without what only tests need, as each of them loads it."""

from __future__ import annotations

from typing import Any

from anima import Home, Scope

LINES = 12  # of each writer


def opened(root: str, config: str, together: Any) -> Home:
    """The home, once everybody has it open."""
    home = Home.open(root, env={"ANIMA_CONFIG": config})
    together.wait(300)
    return home


def search_on(root: str, config: str, together: Any, over: Any, failures: Any) -> None:
    with opened(root, config, together) as home:
        while not over.is_set():
            if len(home.search("canary heron parcel", scope=Scope.GROUP, limit=10)):
                failures.put("a group found something")
            home.search("heron parcel", scope=Scope.MAIN, limit=5)


def write_on(root: str, config: str, together: Any, name: str) -> None:
    with opened(root, config, together) as home:
        for n in range(LINES):
            home.append(f"memory/topics/{name}.md", f"- heron parcel {name}x{n}x canary")


def rebuild_on(root: str, config: str, together: Any, over: Any) -> None:
    with opened(root, config, together) as home:
        while not over.is_set():
            home.index(rebuild=True)
