"""What the owner sets from the page: keys of anima.toml, rules of the gate, the model that answers, programs to connect.

Promise: only a page or a terminal changes how a home is run, never a token; only the keys that stand in SETTABLE; a rule is
the one that was shown; another program's files are changed as they were shown, or not at all. Not here: what a value may be
(config), what becomes of a program's files (connect).
"""

from __future__ import annotations

import hashlib

from fastapi import APIRouter

from anima import StaleWrite
from anima.agent.models import Models
from anima.errors import BadArguments, Refused
from anima.web import bodies
from anima.web.draw import diff_lines
from anima.web.served import Here, Me
from anima.web.tokens import Pass

router = APIRouter(prefix="/api/v1", tags=["settings"])

# What may be set from the page; whatever else stands in anima.toml is set there, with an editor.
SETTABLE = frozenset(
    "timezone owner gate.preset dream.enabled dream.at snapshot.at snapshot.keep rituals.heartbeat rituals.active "
    "rituals.quiet rituals.day_tokens rituals.run_tokens".split()
)


@router.put("/settings/{key}", status_code=204)
def put_setting(here: Here, me: Me, key: str, wish: bodies.Setting) -> None:
    """Sets a key of anima.toml, or with no value takes it out; it holds at once."""
    _need_page(me)
    if key not in SETTABLE:
        raise Refused(f"{key} is not set from a page", rule="settable", hint="it stands in anima.toml; use an editor")
    here.home.configure(key, wish.value)
    here.bulletin.look_soon()


@router.post("/settings/rules", status_code=204)
def add_rule(here: Here, me: Me, wish: bodies.SeenCard) -> None:
    """Writes the rule that would have allowed a proposal, as it was shown with it, before all others."""
    _need_page(me)
    rule = here.home.inbox.rule_for(here.seen(me, wish.id, wish.content))
    if rule is None:
        raise BadArguments("no rule should allow this kind of change; it is decided each time")
    here.home.configure("gate.rule", rule.text)


@router.delete("/settings/rules/{id}", status_code=204)
def drop_rule(here: Here, me: Me, id: str) -> None:
    _need_page(me)
    here.home.configure(f"gate.rule:{id}", None)


@router.put("/model/{name:path}", status_code=204)
def use_model(here: Here, me: Me, name: str) -> None:
    """Lets another of the models answer that were set at a terminal, where keys are typed."""
    _need_page(me)
    here.need_machine()
    models = Models.of(here.home)
    if name not in {each.name for each in models.all()}:
        raise BadArguments(f"{name} was never set", hint=f"anima model {name}")
    models.use(name)


@router.post("/connect/{host}")
def connect(here: Here, me: Me, host: str, wish: bodies.Connecting) -> bodies.ConnectPlan:
    """What connecting a program would change in its files; with the `content` of that, it is done."""
    from anima.connect.connections import connecting_of, host_of

    _need_page(me)
    here.need_machine()
    found = connecting_of(here.home, host_of(host))
    steps = found.plan(remove=wish.remove)
    content = hashlib.sha256("".join(step.diff for step in steps).encode("utf-8", "replace")).hexdigest()
    if wish.content is not None:
        if wish.content != content:
            raise StaleWrite(found.host.title, theirs=None, ours=None)
        (found.remove if wish.remove else found.connect)(steps)
    lines = [line for step in steps for line in diff_lines(step.diff)]
    then = "" if wish.remove else found.host.then.format(bundle=found.wiring.bundle)
    return bodies.ConnectPlan(lines=lines, content=content, then=then)


def _need_page(me: Pass) -> None:
    if me.kind != "page":
        raise Refused("only a page or a terminal changes how a home is run", rule="page", hint="open Settings")
