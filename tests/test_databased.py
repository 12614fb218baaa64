"""The list of tests that only folders have names tests that there are, each with a reason."""

from __future__ import annotations

from pathlib import Path

from databased import folders_only

ROOT = Path(__file__).parent.parent


def test_every_line_names_a_test_that_there_is_and_stands_beneath_a_reason() -> None:
    assert folders_only()
    for name, why in folders_only().items():
        file, _, test = name.partition("::")
        assert why, name
        assert not test or f"def {test.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8"), name
