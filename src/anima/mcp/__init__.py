"""MCP: a home for any agent that speaks the protocol, over standard input and output or streamable HTTP.

Promise: tools come from the table and nowhere else; a visitor's scope is what the command line or the credential says
and nothing a caller sends raises it; every call goes through a Session; an error of ours is a sentence for the model,
never a traceback. Both eras of the protocol are spoken at one place. Not here: what a tool does (sessions), who has a
credential (the app that mounts this).
"""

from anima.mcp.server import McpEndpoint, asgi_app, serve_stdio, server
from anima.mcp.visits import Visitor, Visits

__all__ = ["McpEndpoint", "Visitor", "Visits", "asgi_app", "serve_stdio", "server"]
