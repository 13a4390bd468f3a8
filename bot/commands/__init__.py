"""Commands, buttons and incoming messages, alike in any messaging app.

table.py          every command and button, and who handles it
context.py        what handlers work with
first_screen.py   /start: what this is, and wishes to try
people.py         /start CODE, /pair: letting people and groups in
conversations.py  /new, /resume, /stop, /retry, /export, [Continue]; /memory, /forget
jobs.py           /jobs, /schedule, /repos, /skills, /summary
servers.py        /mcp: MCP servers, and signing in to one
status.py         /status, /gpu, /context
model.py          /model: which one serves, switching, downloads
trust.py          text of strangers in a chat, /trust
approvals.py      questions to owners, /approve
settings.py       /settings, /timezone
"""
