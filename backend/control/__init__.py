"""The control API on the UNIX socket, and what it serves.

api.py            its routes
listening.py      HTTP over a UNIX socket
gpu_queue.py      whose request runs on the GPU next
alerts.py         alerts for the owner, stored and streamed
restart_history.py  when the model server was restarted, and why
speed.py          speed, cache use and energy of the last completions
proxy.py          a port for other local programs
mcp_relay.py      forwards MCP requests to `voltaire mcp serve`
sd_notify.py      systemd's readiness, status and watchdog
"""
