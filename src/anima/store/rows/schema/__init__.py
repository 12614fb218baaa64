"""The tables, as texts that are carried out once each, in order, and never edited; and who carries them out.

Promise: two that bring a database up to date at once do it once; each text is a transaction, so a kill leaves it whole or
not at all; a text that is not the one that was carried out is said and nothing is done. The owner's role makes the tables
and owns them, the application's role has nothing but its rights. Not here: connections that serve homes (database).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from anima.errors import Damaged, NewerFormat

if TYPE_CHECKING:
    from psycopg import Connection

OWNER, APPLICATION = "anima_owner", "anima_app"
_LOCK = 0x616E696D61  # one number for all who bring tables up to date
_ROLES = f"""
    do $$ begin
        if not exists(select from pg_roles where rolname = '{OWNER}') then create role {OWNER} nologin; end if;
        if not exists(select from pg_roles where rolname = '{APPLICATION}') then create role {APPLICATION} login; end if;
        if not pg_has_role(current_user, '{OWNER}', 'set') then execute 'grant {OWNER} to current_user'; end if;
    end $$;
    create schema if not exists anima authorization {OWNER};
"""
_MIGRATION = """
    create table if not exists anima.migration(n integer primary key, digest text not null, time timestamptz default now())
"""


@cache
def texts() -> tuple[str, ...]:
    """Every text, in the order of its number."""
    found = sorted(each.name for each in files(__package__).iterdir() if each.name.endswith(".sql"))
    return tuple(files(__package__).joinpath(name).read_text(encoding="utf-8") for name in found)


def bring_up(db: Connection[Any]) -> int:
    """Makes roles and tables, or brings them up to date, as the owner; how many texts were carried out. Raises Damaged
    where an earlier text is another one, NewerFormat where a newer anima was here."""
    db.execute("select pg_advisory_lock(%s)", (_LOCK,))
    try:
        db.execute(_ROLES)
        with as_owner(db):
            db.execute(_MIGRATION)
            done = dict(db.execute("select n, digest from anima.migration").fetchall())
        if len(done) > len(texts()):
            raise NewerFormat("the database", found=len(done), known=len(texts()))
        for n, text in enumerate(texts(), 1):
            digest = hashlib.sha256(text.encode()).hexdigest()
            if done.get(n, digest) != digest:
                raise Damaged(f"the tables were made by another text {n} than this anima has; nothing was changed")
            if n not in done:
                with as_owner(db):
                    db.execute(text)
                    db.execute("insert into anima.migration(n, digest) values(%s, %s)", (n, digest))
        return len(texts()) - len(done)
    finally:
        db.execute("select pg_advisory_unlock(%s)", (_LOCK,))


@contextmanager
def as_owner(db: Connection[Any], tenant: int | None = None) -> Iterator[None]:
    """A transaction as the owner of the tables, who sees the rows of one tenant at most."""
    with db.transaction():
        db.execute(f"set local role {OWNER}")
        if tenant is not None:
            db.execute(f"set local app.tenant to '{int(tenant)}'")
        yield
