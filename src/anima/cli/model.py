"""The command `model`: which model answers, set, tested and taken off."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from anima.cli.command import HOME, JSON, Reply, argument, command, flag, option
from anima.cli.show import flat, patient
from anima.errors import BadArguments

if TYPE_CHECKING:
    from anima import Home
    from anima.agent.models import Models


@command(
    argument(
        "name",
        metavar="NAME",
        default=None,
        help="A model such as openai:gpt-5, anthropic:NAME, ollama:NAME; or practice.",
    ),
    option("--url", metavar="URL", help="Ask it at this address, of a server that speaks as OpenAI or Anthropic does."),
    flag(
        "--key",
        help="Ask for a key without showing it, or read it from standard input; it is kept for this address alone.",
    ),
    flag("--test", help="Say hello to it."),
    flag("--remove", help="Take it off the list, with its key."),
    HOME,
    JSON,
    owners=lambda given: bool(given["name"]),
)
def model(home: Home, name: str | None, url: str | None, key: bool, test: bool, remove: bool) -> Reply:
    """Show which model answers, choose another, or test it. Without one, practice answers: a small program that follows
    plain sentences.

    \b
    anima model                         what there is, and which is used
    anima model openai:gpt-5            use it; a key in OPENAI_API_KEY is used from then on
    anima model anthropic:NAME --key    use it with a key you type in
    anima model openai-chat:qwen3 --url http://127.0.0.1:8080/v1
    anima model --test                  say hello to the one that is used
    anima model practice                back to the small program
    """
    from anima.agent import PRACTICE, need_chat
    from anima.agent.models import Models

    models = Models.of(home)
    if name is None and (url or key or remove):
        raise BadArguments("say which model is meant", hint="anima model NAME --url URL")
    if remove:
        models.forget(name or "")
    elif name is not None:
        models.use(name, url=url or "", key=typed() if key else "", ask=typed if sys.stdin.isatty() else None)
    said = ""
    if test:
        need_chat()
        said = _tested(models)
    used = models.choice()
    value = {"used": used, "models": models.all(), "offers": [each[0] for each in models.offers()]}
    return Reply(
        value | ({"said": said} if test else {}),
        [*_shown(models, PRACTICE), *([f"it says: {flat(said)}"] if test else [])],
    )


def typed(what: str = "Key") -> str:
    """A secret: typed without being shown, or a line of what is piped in."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    return str(click.prompt(f"{what} (not shown)", hide_input=True, err=True, default="", show_default=False)).strip()


def _shown(models: Models, practice: str) -> list[str]:
    lines = []
    for each in models.all():
        about = "a small program in place of a model" if each.name == practice else f"{each.url}, key: {each.key}"
        lines.append(f"{'*' if each.used else ' '} {flat(each.name)}  ({flat(about)})")
    for variable, service in models.offers():
        lines.append(f"There is a key in {variable}, which nobody uses. To use it: anima model {service}:NAME")
    return lines


def _tested(models: Models) -> str:
    import asyncio

    from anima.agent.conversation import asked_once

    with patient("asking the model"):
        return asyncio.run(asked_once(models.made(models.choice()), "Say hello in one short sentence."))
