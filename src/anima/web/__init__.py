"""The web face: an HTTP API, live events and pages for one home, on this machine only.

Promise: nothing is reached without a credential, no page of another origin gets anything, and every verb calls `Home`
or a `Session` in process. `app.create_app` makes the application, `serve.serve` runs it. Nothing here is imported
before somebody serves. Not here: MCP, which is mounted beside it (app.create_app takes it).
"""
