"""Keeps one llama-server alive on one machine. Knows no agent.

protocol.py client.py   the control API's types and its client: the only modules that other packages import,
connections.py          beside this one, which limits the connections of a server
service.py              serve_backend: runs a whole backend inside a context manager; start here
config.py state.py      what a backend is started with; what its parts share, and its restarts
control/                the control API and what it serves: status, GPU queue, alerts, metrics
server/                 starts, warms, watches and restarts llama-server; uses external servers
models/                 profiles, memory estimates, GPU placement, downloads
gpu/                    the GPUs through NVML: heat, errors, history
measure/                measures this machine: bench, sweep, comparison
build/                  downloads or compiles a llama-server for this machine
embedded/               llama.cpp inside a Python process, with llama-server's flags and routes
aio.py                  waits that asyncio lacks
proc.py                 processes as /proc shows them; programs run to their end
files.py                files replaced atomically, JSON Lines, private folders, locks
pictures.py             pictures of the GPU's last hours and of a bench
charts.py               line charts and bar charts as SVG
"""
