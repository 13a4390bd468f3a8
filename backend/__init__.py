"""Keeps one llama-server alive on one machine. Knows no agent.

protocol.py client.py   what others may import: the control API's values, and its client
service.py              serve_backend: all of it for as long as a block lasts; start here
config.py state.py      what a backend is started with; what its parts share
control/                the control API, and what it serves: status, GPU queue, alerts, metrics
server/                 llama-server: started, warmed, watched, restarted; and servers of others
models/                 profiles, what a model needs, which GPU it gets, downloads
gpu/                    the cards through NVML: heat, errors, history
measure/                how fast this machine is: bench, sweep, comparison
build/                  compiling a llama-server for this machine
embedded/               llama.cpp inside a process of ours, with llama-server's flags and routes
aio.py                  waits that asyncio lacks
proc.py programs.py     processes as /proc shows them; programs that answer and end
files.py                files replaced in one step, private folders, locks
pictures.py             the pictures of the last hours and of a bench
charts.py               lines and bars as SVG
"""
