"""The web face: an HTTP API, live events and pages for one home, on this machine only, or for those of a database.

Promise: nothing is reached without a credential, no page of another origin gets anything, and every verb calls `Home` or a
`Session` in process. Nothing here is imported before somebody serves (`serve`). Not here: MCP, which is mounted beside it.
"""
