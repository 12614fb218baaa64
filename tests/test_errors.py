"""Every error can be caught by its name, and comes back whole from another process."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import anima
from anima import Home, HomeError, StaleWrite, errors
from anima.testing import Clock

SAMPLES = (
    errors.BadPath("../x", "no part of a path begins with a dot"),
    errors.BadConfig("there is no key 'x'", where="anima.toml", hint="anima config lists them"),
    errors.BadText("notes/x.md", "it is not UTF-8"),
    errors.NoSuchDocument("nope.md"),
    errors.NoSuchSession("nope: there is no such session"),
    errors.StaleWrite("MEMORY.md", theirs="a", ours="b"),
    errors.Refused("no", rule="closed"),
    errors.NewerFormat("ledger.jsonl", found=9, known=4),
    errors.OverQuota("bytes", used=2, most=1),
    errors.HomeBusy("process 1", seconds=2.0),
    errors.MissingExtra("serve", "serving"),
    errors.TooMany("later"),
)


def overwrite(home: str) -> None:
    with Home.open(home) as here:
        here.write("MEMORY.md", "mine", base="what stood there once")


def test_a_program_catches_every_error_by_its_name_in_anima() -> None:
    ours = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, HomeError)]

    assert [each.__name__ for each in ours if getattr(anima, each.__name__, None) is not each] == []


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_a_copy_of_an_error_says_and_carries_the_same(error: HomeError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert (str(again), vars(again)) == (str(error), vars(error))


def test_an_error_in_a_pool_of_processes_reaches_whoever_asked(tmp_path: Path, clock: Clock) -> None:
    Home.create(tmp_path / "home", name="Aria", clock=clock).close()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(StaleWrite) as told:
            pool.submit(overwrite, str(tmp_path / "home")).result()

        assert told.value.theirs and told.value.ours == "mine"
        assert pool.submit(len, "it goes on").result() == 10
