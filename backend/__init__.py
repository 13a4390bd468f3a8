"""Keeps one llama-server alive on one machine. Knows no agent.

protocol.py client.py    what others may import: the control API's values, and a client
service.py               serve_backend: everything below, composed, for as long as a block lasts
supervisor.py policy.py  one writer of the server's state; its decisions, pure
process.py diagnosis.py  the child as a context manager; why it died, in one sentence
llama.py                 the only file that knows llama-server's HTTP routes
flags.py profile.py      what a server is started with; profiles/ holds them as TOML
watch.py warm.py ladder.py   signs of life, the warm prefix, less memory
lanes.py                 whose turn it is on the GPU
gpu.py history.py guard.py alerts.py speed.py   NVML, minutes kept, heat, news, figures
api.py metrics.py proxy.py notify.py            control API, Prometheus, other programs, systemd
embedded.py              the embedded llama.cpp server, with llama-server's flags
plot.py                  the picture of the last hours, drawn in a process of its own
"""
