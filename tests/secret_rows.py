"""The rows of the corpus of secrets, put together."""

from __future__ import annotations


def filled(row: dict[str, object]) -> tuple[str, str]:
    """A secret of the corpus, put together, and the line it stands in."""
    parts, text = row["parts"], str(row["text"])
    assert isinstance(parts, list)
    secret = "".join(map(str, parts))
    return secret, text.replace("{{", "{").replace("}}", "}").replace("{}", secret)
