"""The page of every public name is made from docstrings, and is up to date."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_every_public_name_says_what_it_is_and_the_reference_says_the_same() -> None:
    spec = spec_from_file_location("reference", DOCS / "reference.py")
    assert spec and spec.loader
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    text, missing = made.page()

    assert missing == [], "these say nothing of themselves"
    assert (DOCS / "reference.md").read_text(encoding="utf-8") == text, "make reference"
