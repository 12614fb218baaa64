"""Tests that were written for homes in folders, in PostgreSQL instead: with STORE=postgres every folder that a test makes or
opens as a home stands for a tenant of its own.

What a test does to the files themselves, behind the home's back, cannot be had there: a test that ends at a file that is not
there is skipped, and says at which. Those that are about folders in another way are named in FOLDERS_ONLY with the reason.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from anima.backup import restore
from anima.home import opening
from anima.testing import postgres


class Databased:
    """Where folders of one test stand: the address of each, by its path."""

    def __init__(self, owner: str, application: str) -> None:
        self._owner, self._application = owner, application
        self._places: dict[str, str] = {}
        self._moving = ""  # the folder that is being carried over
        self._moved = set[str]()
        self._given = opening.given_place

    def __call__(self, path: Any, env: Any) -> Any:
        place = self._given(path, env)
        name, _, whose = str(place).partition(" ")
        if whose and name.startswith("postgresql:"):
            return f"{self._application}#{whose}"  # what a home is called
        key = os.path.realpath(os.path.expanduser(str(place)))
        if opening.is_address(place) or key == self._moving:
            return place
        if key not in self._places:
            self._places[key] = f"{self._application}#{postgres.new_tenant(self._owner)}"
            if os.path.isdir(key) and os.listdir(key):
                self._move(Path(key), self._places[key])
        return self._places[key]

    def missed(self, error: BaseException | None) -> str | None:
        """What a test wanted of a folder that is none: a file it looked for, or one that it put there itself."""
        while error is not None:
            if isinstance(error, FileNotFoundError | NotADirectoryError) and error.filename:
                return f"looks at the file {os.path.basename(str(error.filename))} itself"
            error = error.__cause__ or error.__context__
        own = [key for key in self._places if key not in self._moved and os.path.isdir(key) and os.listdir(key)]
        return "puts files into the folder itself" if own or os.path.exists("postgresql:") else None

    def _move(self, folder: Path, address: str) -> None:
        """A folder that is there already, such as an example home, with all that is in it."""
        from anima.home.folders import migrate

        self._moving = str(folder)
        migrate(folder, address)
        self._moving = ""
        self._moved.add(str(folder))


PLACED = pytest.StashKey[Databased]()


def move_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has homes of this test stand in the database, or skips it."""
    for part, why in FOLDERS_ONLY.items():
        if part in request.node.nodeid:
            pytest.skip(f"folders only: {why}")
    cluster = request.getfixturevalue("cluster")
    monkeypatch.setenv("ANIMA_KEY", "0123456789abcdef" * 4)
    monkeypatch.chdir(request.getfixturevalue("tmp_path_factory").mktemp("here"))
    placed = request.node.stash[PLACED] = Databased(cluster.owner, cluster.application)
    monkeypatch.setattr(opening, "given_place", placed)
    restored = restore.restore

    def restores(archive: Any, path: Any, **more: Any) -> Any:
        return restored(archive, placed(path, {}), **more)

    monkeypatch.setattr(restore, "restore", restores)


FOLDERS_ONLY = {
    "test_a_snapshot_from_before_goes": "its home is made once for several tests, in a folder, with snapshots of that folder",
    "test_a_dry_run_touches_nothing_and_lists": "it puts broken pieces where a folder keeps what it set aside",
    "test_a_session_forgotten_first_and_purged": "it looks through every file of the folder",
    "test_killed_between_the_two_renames": "git repositories are swapped by renaming them",
    "test_about_answers_for_the_days_before": "it starts a program with the home's name",
    "test_of_eight_processes": "it starts programs with the home's name",
    "test_statistics_tell_of_the_nights": "it starts a program with the home's name",
    "test_a_conversation_over_mcp_leaves": "it starts a program with the home's name",
    "test_flushes_of_one_session_in_several": "it starts programs with the home's name",
    "test_what_the_system_does_not_let_us_read": "it is about modes of files",
    "test_no_flag_and_no_variable_calls": "it gives an environment without the key of a database",
    "test_a_persons_branches_go": "only a git repository has branches of a person's own",
}
