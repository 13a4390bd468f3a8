"""The control API on the UNIX socket, and what it serves.

api.py            its routes
listening.py      HTTP over a UNIX socket; forwards MCP requests to `voltaire mcp serve`
gpu_queue.py      whose request runs on the GPU next
alerts.py         alerts for the owner, stored and streamed
speed.py          speed, cache use and energy of the last completions
metrics.py        the status in Prometheus's text format
proxy.py          a port for other local programs
sd_notify.py      systemd's readiness, status and watchdog
"""
