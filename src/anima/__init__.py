"""anima: a home for an AI agent. The files are the soul, not the model weights.

Names are imported when they are first used, so that `import anima` costs next to nothing. Which there are, and where each
stands, is said once, in `__init__.pyi`.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

with open(os.path.join(os.path.dirname(__file__), "__init__.pyi"), encoding="utf-8") as _stub:
    _WORDS = [line.split() for line in _stub if line.startswith("from ")]  # from MODULE import NAME as NAME
_WHERE = {words[-1]: words[1] for words in _WORDS}

__all__ = list(_WHERE | {"__version__": __name__})


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'anima' has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    if not isinstance(value, type):  # a function
        value = import_module("anima.home.verbs").looking(value)
        value.__module__ = __name__  # where another process finds it
    globals()[name] = value
    return value
