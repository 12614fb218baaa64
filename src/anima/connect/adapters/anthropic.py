"""Anthropic's memory tool (`memory_20250818`) over a home: `/memories` is the home as the listener sees it.

Promise: the sentences that the service documents, word for word; a write passes the gate, and one that is not carried out
is an error that says why and what happens next, never the sentence of success. No command sees or names what is not the
listener's, nothing leaves `/memories`, and the commands of one reply are carried out one after the other.
`asked` and `record` keep the conversation, since the service does not.

    memory = LodgedMemory(opened.session(scope="main"))
    runner = client.beta.messages.tool_runner(
        model=…, max_tokens=1024, system=memory.prompt, tools=[memory], messages=memory.asked("Where is the boat?"))
    for message in runner:
        memory.record(message)
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from anima import Session, lines_of
from anima.connect.adapters import Lodger, needed
from anima.errors import HomeError, NotFound, for_a_model
from anima.model import Kind

with needed("anthropic", "Anthropic's memory tool"):
    from anthropic.lib.tools import BetaBuiltinFunctionTool, ToolError

ROOT = "/memories"
MAX_LINES = 999_999
_COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")
_LISTED = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:"
_ABSENT = "The path {} does not exist. Please provide a valid path."
_MODEL_TEXT = ("text", "thinking", "redacted_thinking", "tool_use", "fallback", "compaction")


class LodgedMemory(BetaBuiltinFunctionTool):
    """The tool, and the conversation it is used in. Safe to share by threads."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session, self.prompt = session, session.prompt.text
        self._lodger, self._mutex = Lodger(session), threading.RLock()

    def asked(self, text: str) -> list[dict[str, Any]]:
        """What the person says, on record; and all messages of the conversation with it, for the service."""
        self._lodger.owner(text)
        said: list[dict[str, Any]] = []
        for who, _, turn in self._lodger.past():
            role = "assistant" if who == "model" else "user"
            if who == "call":
                continue  # what was looked up is looked up again
            if said and said[-1]["role"] == role:
                said[-1]["content"] += f"\n\n{turn.content}"
            else:
                said.append({"role": role, "content": turn.content})
        return said if said[0]["role"] == "user" else [{"role": "user", "content": "(…)"}, *said]

    def record(self, message: Any) -> None:
        """What the model answers. A call of any other tool, or of the service's own, brings in text from outside."""
        for block in message.content:
            is_others = block.type == "tool_use" and block.name not in ("memory", *self.session.site.config.own_tools)
            if is_others or block.type not in _MODEL_TEXT:
                self._lodger.attached()
        self._lodger.model("".join(block.text for block in message.content if block.type == "text"))

    def to_dict(self) -> Any:
        return {"type": "memory_20250818", "name": "memory"}

    def call(self, input: object) -> str:
        """Carries a command out. Raises ToolError, with the sentence for the model."""
        given: Mapping[str, Any] = input if isinstance(input, Mapping) else {}
        name = given.get("command")
        if name not in _COMMANDS:
            raise ToolError(f"Error: there is no command {name!r}; there are {', '.join(_COMMANDS)}")
        try:
            with self._mutex:
                return str(getattr(self, f"_{name}")(given))
        except HomeError as error:
            raise ToolError(f"Error: {for_a_model(error, root=self.session.site.store.name)}") from None
        except KeyError as missing:
            raise ToolError(f"Error: {name} needs {missing.args[0]}") from None

    def _view(self, command: Mapping[str, Any]) -> str:
        path = self._path(command["path"])
        if self._is_folder(path):
            sizes: dict[str, int] = {}
            for seen in self.session.documents():
                inside = seen.path.removeprefix(f"{path}/") if path else seen.path
                if inside != seen.path or not path:
                    parts = inside.split("/")
                    for depth in range(len(parts) + 1)[:3]:
                        sizes["/".join(parts[:depth])] = sizes.get("/".join(parts[:depth]), 0) + (seen.size or 0)
            top = command["path"].rstrip("/")
            rows = (f"{_size(size)}\t{top}/{inside}".rstrip("/") for inside, size in sorted(sizes.items()))
            return "\n".join([_LISTED.format(command["path"]), *rows])
        lines = _lines(self._text(path, _ABSENT.format(command["path"])))
        if len(lines) > MAX_LINES:
            raise ToolError(f"File {command['path']} exceeds maximum line limit of {MAX_LINES:,} lines.")
        first, last = 1, len(lines)
        asked = command.get("view_range")
        if isinstance(asked, Sequence) and len(asked) == 2 and all(type(each) is int for each in asked):
            first, last = max(1, asked[0]), last if asked[1] == -1 else asked[1]
        shown = _numbered(lines[first - 1 : last], first)
        return f"Here's the content of {command['path']} with line numbers:\n{shown}"

    def _create(self, command: Mapping[str, Any]) -> str:
        path, text = self._path(command["path"]), command["file_text"]
        if self._is_there(path):
            raise ToolError(f"Error: File {command['path']} already exists")
        self._write(path, content=text, append=False)
        return f"File created successfully at: {command['path']}"

    def _str_replace(self, command: Mapping[str, Any]) -> str:
        path, old, new = self._path(command["path"]), command["old_str"], command.get("new_str") or ""
        text, named = self._text(path, f"Error: {_ABSENT.format(command['path'])}"), command["path"]
        if not old or not (count := text.count(old)):
            raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {named}.")
        if count > 1:
            at = [n for n in range(len(text)) if text.startswith(old, n)]
            lines = ", ".join(dict.fromkeys(str(text.count("\n", 0, n) + 1) for n in at))
            said = f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}."
            raise ToolError(f"{said} Please ensure it is unique")
        self._write(path, old_string=old, new_string=new)
        first = text.count("\n", 0, text.index(old)) + 1
        low, high = max(1, first - 2), first + new.count("\n") + 2
        return f"The memory file has been edited.\n{_numbered(_lines(self.session.read(path))[low - 1 : high], low)}"

    def _insert(self, command: Mapping[str, Any]) -> str:
        path, at, added = self._path(command["path"]), command["insert_line"], str(command["insert_text"])
        text = self._text(path, f"Error: The path {command['path']} does not exist")
        lines, added = lines_of(text), added if added.endswith("\n") else f"{added}\n"
        if type(at) is not int or not 0 <= at <= len(lines):
            where = f"It should be within the range of lines of the file: [0, {len(lines)}]"
            raise ToolError(f"Error: Invalid `insert_line` parameter: {at}. {where}")
        if at == len(lines):  # what only adds is noted where it may not be written
            self._write(path, content=added, append=True)
        else:
            self._write(path, old_string=text, new_string="".join((*lines[:at], added, *lines[at:])))
        return f"The file {command['path']} has been edited."

    def _delete(self, command: Mapping[str, Any]) -> str:
        path = self._path(command["path"])
        if not path:
            raise ToolError(f"Error: {ROOT} itself cannot be deleted")
        for each in self._beneath(path, command["path"]):
            self._done(self.session.change(Kind.DELETE, each))
        return f"Successfully deleted {command['path']}"

    def _rename(self, command: Mapping[str, Any]) -> str:
        old, new = self._path(command["old_path"]), self._path(command["new_path"])
        if not old or not new:
            raise ToolError(f"Error: {ROOT} itself cannot be renamed")
        inside = self._beneath(old, command["old_path"])
        if self._is_there(new) or self._is_folder(new):
            raise ToolError(f"Error: The destination {command['new_path']} already exists")
        for each in inside:
            self._done(self.session.change(Kind.MOVE, each, to=new + each.removeprefix(old)))
        return f"Successfully renamed {command['old_path']} to {command['new_path']}"

    def _path(self, named: object) -> str:
        """A path of the tool's as one of the home's; "" is the home itself."""
        if not isinstance(named, str) or (named != ROOT and not named.startswith(f"{ROOT}/")):
            raise ToolError(f"Error: Path must start with {ROOT}, got: {named}")
        return named.removeprefix(ROOT).strip("/")

    def _beneath(self, path: str, named: str) -> list[str]:
        """The document that a path names, or those of the folder. Raises ToolError where there is none."""
        paths = [seen.path for seen in self.session.documents()]
        if inside := [each for each in paths if each == path or each.startswith(f"{path}/")]:
            return inside
        raise ToolError(f"Error: The path {named} does not exist")

    def _is_there(self, path: str) -> bool:
        return path.casefold() in {seen.path.casefold() for seen in self.session.documents()}

    def _is_folder(self, path: str) -> bool:
        return not path or any(seen.path.startswith(f"{path}/") for seen in self.session.documents())

    def _text(self, path: str, absent: str) -> str:
        try:
            return self.session.read(path)
        except NotFound:
            raise ToolError(absent) from None

    def _write(self, path: str, **given: Any) -> None:
        self._done(self.session.call("memory_write", {"target": path, **given}))

    def _done(self, answer: Mapping[str, Any]) -> None:
        """Raises ToolError where a write was not carried out."""
        if answer["status"] != "written":
            review = f" {answer['review']}." if answer.get("review") else ""
            raise ToolError(f"Error: not written ({answer['status']}): {answer.get('reason', '')}.{review}")


def _lines(text: str) -> list[str]:
    return [line.removesuffix("\n") for line in lines_of(text)]


def _numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, start=first))


def _size(count: int) -> str:
    power = min(max(0, count.bit_length() - 1) // 10, 3)
    return f"{count / 1024**power:.1f}".removesuffix(".0") + "BKMG"[power]
