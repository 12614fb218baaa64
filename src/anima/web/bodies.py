"""What the API takes, and the shapes of what it gives, as OpenAPI tells them.

Promise: what is sent may hold nothing a body does not name. Shapes stand in a table (`tables/bodies.toml`), those that a route
takes as well. Routes give the values of the home themselves; a shape is derived from a value's own fields, and says which of
its properties are told beside them and which are not.
Not here: any effect.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from types import GenericAlias, SimpleNamespace
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

import anima
from anima.model import Change
from anima.text import read_table
from anima.web.draw import DiffLine
from anima.web.tokens import Pass

T = TypeVar("T", bound=Callable[..., Any])
Text = Annotated[str, Field(max_length=8 * 2**20)]
Reason = Annotated[str, Field(max_length=1_000)]
Place = Annotated[str, Field(min_length=1, max_length=1_024, description="A path inside the home")]


class Out(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


Schema = Annotated[dict[str, Any], Field(description="JSON Schema of the arguments")]
Where = Annotated[str, BeforeValidator(lambda left: left.where)]
_SHAPES: dict[str, Any] = {"Change": Change, "DiffLine": DiffLine, "Done": anima.Done, "Pass": Pass}
_SHAPES |= {"IndexReport": anima.IndexReport, "Literal": Literal, "date": date, "datetime": datetime}


def given(name: str) -> Any:
    return _SHAPES[name]


def takes(name: str) -> Callable[[T], T]:
    """Says of a route which shape its `wish` has."""

    def told(route: T) -> T:
        route.__annotations__["wish"] = given(name)
        return route

    return told


def some(name: str) -> Any:
    return GenericAlias(list, (given(name),))


def items(name: str) -> Any:
    return create_model(f"Items[{name}]", __base__=Out, items=(some(name), ...))


def paged(name: str) -> Any:
    """Some of a list; `next` is the `start` of the page that follows."""
    return create_model(f"Paged[{name}]", __base__=Out, items=(some(name), ...), next=(int | None, None))


def _shape(name: str, row: dict[str, Any]) -> Any:
    """What the table says of a shape: the first lines there tell how."""
    doc, without = row.pop("doc", None), row.pop("without", "").split()
    said = SimpleNamespace(
        __annotations__={field: each if isinstance(each, str) else each[0] for field, each in row.items()}
    )
    told = get_type_hints(said, {**globals(), **_SHAPES}, include_extras=True)
    like, of = told.pop("like", Out), told.pop("of", None)
    own = {field: kind for field, kind in get_type_hints(of).items() if field not in without} if of else {}
    rows: dict[str, Any] = {field: (kind, ...) for field, kind in (own | told).items()}
    for field, each in row.items():
        if isinstance(each, list):  # it may be missing
            rows[field] = (told[field], each[1] if len(each) > 1 else None)
    return create_model(name, __base__=like, __doc__=doc or (of.__doc__ if of else None), **rows)


for _name, _row in read_table("web", "bodies").items():
    _SHAPES[_name] = _shape(_name, dict(_row))
