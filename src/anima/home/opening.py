"""Opening: how the site of a home is found, made and opened, in a folder, in a database, or as two layers.

Promise: opening changes nothing on disk; making touches nothing that is there; a folder of another user's, or one where
a home vanished, is refused with a sentence. Not here: what a site is (site), the verbs of an open home (home).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from anima import config as configs
from anima.config import Config
from anima.errors import BadArguments, BadConfig, HomeError, NoSuchDocument, NoSuchHome, Refused
from anima.layout import layer_of
from anima.layout.dialects import Detection, dialect_of, layout_for
from anima.layout.trust import Register, place_of
from anima.layout.trust import folder as user_folder
from anima.model import OWN_FILE, DocPath, is_address
from anima.site import Named, Site, World, first_agent, laid_out, rules_for
from anima.store import Rules, Store
from anima.store.folder import Folder
from anima.store.overlay import Below, Layers, Overlay, OverlayDocuments, OverlayStore
from anima.store.place import FolderStore, open_home_folder
from anima.store.private import made_as, make_home_folder, mark_made

if TYPE_CHECKING:
    from anima.store.rows import RowPlace
    from anima.store.rows.store import RowStore


_CONFIG_TEXT = """\
# How this home is run. Every key is optional; `anima config` shows them all with where each value came from.
dialect = "{dialect}"
"""
UNREAD: Mapping[str, Any] = {}  # settings of who opens a home whatever its configuration says, to restore it


def open_site(
    path: str | Path | Overlay | None,
    world: World,
    *,
    tenant: str | None = None,
    create: bool = False,
    agent: str | None = None,
    settings: Mapping[str, Any] | None = None,
    finish: bool = False,
    is_below: bool = False,
) -> Site:
    """The site of the home in a folder, of a tenant's agent in a database, or of two layers, in whatever dialect it is.
    Nothing is changed by opening it, but that with `finish` what a crash interrupted is finished and an upper layer has
    its ledger, and with `create` a home in a database or an upper layer is made."""
    spec, env, clock = path if isinstance(path, Overlay) else None, world.env, world.clock
    place, whose = _upper(spec) if spec else (given_place(None if isinstance(path, Overlay) else path, env), agent)
    if create and spec is None and not is_address(place):
        raise BadArguments(f"{place}: this is a folder", hint="Home.create makes a home in a folder")
    ground = _ground(place, world, tenant=tenant, agent=whose, create=create)
    layers = None
    try:
        config = configured(ground.documents, ground.register, env, settings)
        folder = ground.documents if isinstance(ground.documents, Folder) and spec is None else None
        if folder and agent is not None and (other := _agent_home(config, agent, folder, ground.made)):
            ground.close()
            ground = _ground(other, world)
            theirs = configured(ground.documents, ground.register, env, settings)
            config = replace(theirs, agent=config.agent, binding=config.binding)
        documents, register, made = ground.documents, ground.register, ground.made
        spec = spec or _configured_layers(config, ground)
        if spec and is_below:
            raise BadConfig(f"{place} has a layer below it, and a home has two at most", where="layers.lower")
        if spec:
            layers, made = _layers(spec, world, ground, tenant)
            documents = OverlayDocuments(documents, layers, lambda: lambda path: False)
            own, lower = register, layers.all  # both layers are trusted together
            register = Register(
                own.file.parent,
                lambda name, identity: own.trusts(name, identity) and all(below.is_trusted() for below in lower),
                lambda name, identity, trusted: own.note(name, identity=identity, trusted=trusted),
            )
            config = configured(documents, register, env, settings)
        detection = detected(documents, config, made)
        layout, agent = laid_out(layout_for(detection.dialect), config), agent or first_agent(config)
        store = ground.store(rules_for(layout, config, documents, register, clock=clock, agent=agent))
        if layers is not None:
            store = cast(Store, OverlayStore(store, layers))
        if finish and (layers is not None or (isinstance(store, FolderStore) and store.was_interrupted())):
            _ = store.ledger
    except BaseException:
        ground.close()
        for below in layers.all if layers else ():
            below.store.close()
        raise
    # Nothing that was set for this one goes with another agent.
    beside = partial(open_site, path, world, tenant=tenant, finish=finish)
    return Site(store, layout, config, clock, world.dice, agent, detection.why, env, register, beside)


def refuse_empty(site: Site, place: object) -> None:
    """Raises NoSuchHome, and lets the site go, where it is of an empty folder and nobody says which dialect it will have."""
    if not isinstance(place, str | Path) or is_address(place) or site.config.dialect != "auto" or site.store.begun:
        return
    if not site.store.documents.names(""):
        site.store.close()
        name = site.store.name  # an agent may have a folder of its own
        hint = f"anima init {shlex.quote(name)} makes one there"
        raise NoSuchHome(f"{name} is an empty folder, and no home", hint=hint)


class _Ground(NamedTuple):
    """A place that is open, before anybody knows what holds there."""

    documents: Any  # of a folder, or of rows
    register: Register
    made: str  # the dialect we made it in
    store: Callable[[Rules], Store]

    def close(self) -> None:
        if isinstance(self.documents, Folder):
            self.documents.close()


def _ground(
    path: str | Path, world: World, *, tenant: str | None = None, agent: str | None = None, create: bool = False
) -> _Ground:
    users = user_folder(world.env)
    if is_address(path):
        place = _in_database(str(path), world, tenant=tenant, agent=agent, create=create)
        shelf, has_head = str(users / "snapshots" / place.identity.partition(".")[0]), place.rows.engine.mark

        def made(rules: Rules) -> Store:
            rules = rules if has_head else replace(rules, head=None)  # a server keeps it in a table that only grows
            return _in_rows(place, rules, shelf=shelf)

        register = Register(users)  # one in a file is vouched for as a folder is
        if place.rows.engine.needs_tenant:  # and of a database, the servers share what is trusted
            register = Register(
                users, lambda *_: place.is_trusted, lambda name, identity, trusted: place.trust(trusted)
            )
        return _Ground(place.documents, register, place.made_as, made)
    if tenant is not None:
        raise BadArguments(f"{path}: a folder has no tenants", hint="Home.create makes a home in a folder")
    register = Register(users)
    if create and not _is_there(register, place_of(path), lambda: Path(path).exists()):
        make_home_folder(Path(path), for_owner=True)
        with closing(Folder(path)) as new, suppress(HomeError):
            register.note(new.name, identity=new.identity, made=world.clock(), trusted=True)
    try:
        folder = open_home_folder(path)
    except NoSuchHome:
        known = register.known(place_of(path))
        if known and known.made:
            raise NoSuchHome(
                f"{path}: a home was made here on {known.made[:10]}, and it has vanished",
                hint="is its disk mounted? restore it from a backup, or make a new one with anima init --again",
            ) from None
        raise
    return _Ground(folder, register, made_as(folder), lambda rules: FolderStore(folder, rules))


def _in_rows(place: RowPlace, rules: Rules, *, shelf: str) -> RowStore:
    from anima.store.rows.store import RowStore
    from anima.store.rows.whole import RowWhole

    return RowStore(place, rules, shelf=shelf, whole=RowWhole)


def _upper(spec: Overlay) -> tuple[str | Path, str | None]:
    """Where the upper layer is, and the agent whose home it is where a database holds several. No two sessions, users or
    agents have one place."""
    levels = ("agent", "user", "session")
    held = levels[: levels.index(spec.isolation) + 1] if spec.isolation in levels else ()
    parts = [f"{name}s/{layer_of(id, ())}" for name, id in spec.ids if name in held]
    name = "/".join(parts) or spec.isolation
    if not name or not is_address(spec.upper):
        return (spec.upper if is_address(spec.upper) else Path(spec.upper).expanduser() / name), None
    address, _, whose = str(spec.upper).partition("#")
    return (f"{address}#{whose}/{name}", None) if whose else (address, name)


def _configured_layers(config: Config, ground: _Ground) -> Overlay | None:
    """The layer below a home, as its own configuration says; a folder is meant from the home's."""
    if not config.layers.lower:
        return None
    base = ground.documents.name if isinstance(ground.documents, Folder) else "/"
    places = {"": config.layers.lower, **dict(config.layers.routes)}
    found = {
        prefix: at if not at or is_address(at) else Path(base, Path(at).expanduser()) for prefix, at in places.items()
    }
    lower = found.pop("")
    return Overlay(upper=base, lower=lower, routes=tuple((prefix, at or None) for prefix, at in found.items()))


def _layers(spec: Overlay, world: World, ground: _Ground, tenant: str | None) -> tuple[Layers, str]:
    """What lies below, opened to be read; and the dialect of the home that both are."""
    own = ground.documents
    known = ground.register.known(own.name)
    if known and known.made and known.identity not in (None, own.identity):
        raise Refused(
            f"{own.name}: another one stands where this home was made, so it is not taken for it",
            rule="vanished-home",
            hint="is its disk mounted? if you moved it yourself, say anima trust-home",
        )

    def below(place: str | Path) -> Below:
        of = tenant if is_address(place) and str(place).startswith("postgres") else None
        site = open_site(place, world, tenant=of, is_below=True)
        dialects.append(site.layout.dialect)
        return Below(site.store, lambda: site.register.trusts(site.store.name, site.store.identity))

    dialects: list[str] = []
    routes = {"": spec.lower, **dict(spec.routes)}
    return Layers({prefix: below(at) if at else None for prefix, at in routes.items()}), ground.made or dialects[0]


def given_place(path: str | Path | None, env: Mapping[str, str]) -> str | Path:
    """Where a home is: the place that was given, else the one DATABASE_URL names."""
    if place := path or env.get("DATABASE_URL"):
        return place
    raise BadArguments("no place of a home is given", hint="name a folder or a database, or set DATABASE_URL")


def configured(store: Named, register: Register, env: Mapping[str, str], flags: Mapping[str, Any] | None) -> Config:
    text: str | None = None
    with suppress(NoSuchDocument):
        text = store.read(DocPath.parse(configs.FILE)).text if flags is not UNREAD else None
    trusted = text is None or register.trusts(store.name, store.identity)
    return configs.load(text, env=env, flags=flags, trusted=trusted, own=register.owners_file(OWN_FILE))


def detected(store: Named, config: Config, made: str) -> Detection:
    if config.dialect != "auto":
        return Detection(dialect=config.dialect, why=f"dialect is set by {config.sources.get('dialect', 'default')}")
    return dialect_of(made, store.names, store.is_folder)


def _agent_home(config: Config, agent: str, store: Folder, made: str) -> Path | None:
    """Where an agent of the configuration lives; None when it shares this folder, as it does where the dialect keeps a
    folder for each agent and there is one of its name. Raises BadConfig for an agent nobody knows."""
    found = next((a for a in config.agent if a.id == agent), None)
    if found is not None:
        return Path(store.name, Path(found.home).expanduser()) if found.home else None
    top = layout_for(detected(store, config, made).dialect).talks.partition("/{agent}")[0]
    here = [name for name in store.names(top) if store.is_folder(f"{top}/{name}")] if top else []
    if agent not in here:
        known = ", ".join(dict.fromkeys([*(a.id for a in config.agent), *here])) or "none"
        raise BadConfig(f"there is no agent {agent!r} in the configuration (there is: {known})", where=configs.FILE)
    return None


def make_home(
    path: str | Path | None,
    world: World,
    *,
    settings: Mapping[str, Any] | None,
    again: bool,
    tenant: str | None = None,
    agent: str | None = None,
) -> bool:
    """Makes the folder of a home with its configuration; whether it is brand-new, nothing of an agent's being there.
    It is of the dialect that environment or settings name, else of the one it has. Refuses to bury a home that vanished."""
    from anima.layout import STARTERS
    from anima.store.outside import expanded

    env, now = world.env, world.clock()
    asked = configs.load(None, env=env, flags=settings, trusted=True)
    signs_of_life = {name.casefold() for name in STARTERS} | {"memory", ".git", "daily", "notes", configs.FILE}
    if is_address(place := given_place(path, env)):
        found = _in_database(str(place), world, tenant=tenant, agent=agent, create=True, again=again)
        lives = {name.casefold() for name in found.documents.names("")} & signs_of_life
        brand_new = lives <= {configs.FILE}
        if brand_new:
            dialect = detected(found.documents, asked, found.made_as).dialect
            rules = Rules(clock=lambda: now, author="", is_closed=lambda path: False)
            _in_rows(found, rules, shelf="").make(configs.FILE, _CONFIG_TEXT.format(dialect=dialect), dialect)
        return brand_new
    register, path = Register(user_folder(env)), expanded(place)
    gone = not os.path.exists(path) or (path.is_dir() and not any(path.iterdir()))
    if not again:
        _is_there(register, place_of(path), lambda: not gone)
    is_top = not gone and path.resolve().parent == Path("/")
    if is_top and signs_of_life.isdisjoint(each.name.casefold() for each in path.iterdir()):
        raise Refused(
            f"{path}: this folder is the system's, and other things are in it; nothing was written",
            rule="system-folder",
            hint="a home has a folder of its own: anima init ~/aria --name Aria",
        )
    make_home_folder(path, for_owner=gone)
    store = Folder(path)
    try:
        if gone:
            with suppress(OSError):
                register.head(store.name, store.identity).drop()  # of a home that stood here
        brand_new = not any(name.casefold() in signs_of_life - {configs.FILE} for name in store.names(""))
        dialect = detected(store, asked, made_as(store)).dialect
        ours = store.create(DocPath.parse(configs.FILE), _CONFIG_TEXT.format(dialect=dialect))
        if brand_new:
            mark_made(store, dialect)
        # A configuration that was here before is somebody else's until the owner says trust-home.
        trusted = ours or register.trusts(store.name, store.identity)
        with suppress(HomeError):  # a list that cannot be written costs only the trust
            register.note(store.name, identity=store.identity, made=now, trusted=trusted)
        return brand_new
    finally:
        store.close()


def _is_there(register: Register, place: str, look: Callable[[], bool]) -> bool:
    """Whether a home stands at a place. Refuses to bury one that this user made where nothing stands now; what was made
    is asked before it is looked for, since somebody may make it meanwhile."""
    known, found = register.known(place), look()
    if known and known.made and not found:
        raise Refused(
            f"{place}: a home made on {known.made[:10]} stood here, and it has vanished; nothing was written",
            rule="vanished-home",
            hint="is its disk mounted? restore it from a backup, or make a new one: anima init --again",
        )
    return found


def _in_database(
    address: str, world: World, *, tenant: str | None, agent: str | None, create: bool, again: bool = False
) -> RowPlace:
    """A home's place in a database. One in a file that is made here is this user's, as a folder is."""
    from anima.store.rows import find_home
    from anima.store.rows.sqlite import name_in

    same: Any = {"tenant": tenant, "agent": agent, "env": world.env}
    is_made = create and not address.startswith("postgres")
    found: list[RowPlace] = []
    register = Register(user_folder(world.env))

    def look() -> bool:
        with suppress(NoSuchHome):
            found.append(find_home(address, **same))
        return bool(found)

    if is_made and (look() if again else _is_there(register, name_in(address, agent), look)):
        return found[0]
    place = find_home(address, create=create, **same)
    if is_made:
        with suppress(HomeError):
            register.note(place.name, identity=place.identity, made=world.clock(), trusted=True)
    return place
