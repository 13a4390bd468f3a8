"""Commands, buttons and incoming messages, alike in any messaging app.

table.py          every command and button, and who handles it
context.py        what handlers work with
people.py         /start, /pair: what this is, wishes to try; letting people and groups in
conversations.py  /new, /resume, /stop, /retry, /export, [Continue]; /memory, /forget
jobs.py           /jobs, /schedule, /repos, /skills, /summary; /mcp: MCP servers, and signing in to one
status.py         /status, /gpu, /context
model.py          /model: which one serves, switching, downloads
changes.py        /changes, /undo: what turns changed in the workspace
trust.py          text of strangers in a chat, /trust
approvals.py      questions to owners, /approve
settings.py       /settings, /timezone
"""
