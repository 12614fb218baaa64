"""The hosts there are, one module each."""

from anima.connect.host import Host
from anima.connect.hosts import claude_code, codex, cursor, gemini, generic, hermes, nanobot, openclaw, vscode

HOSTS: dict[str, Host] = {
    module.HOST.name: module.HOST
    for module in (claude_code, codex, cursor, vscode, gemini, openclaw, hermes, nanobot, generic)
}
