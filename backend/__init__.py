"""Keeps one llama-server alive on one machine. Knows no agent.

protocol.py client.py         what others may import: the control API's values, and a client
service.py config.py state.py  serve_backend: all of it, composed, for as long as a block lasts
supervisor.py policy.py       one writer of the server's state, with life.py; its decisions, pure
life.py vigil.py watch.py     one start to its end; looking after it; what is a sign of life
process.py diagnosis.py       the child as a context manager; why it died, in one sentence
llama.py                      the only file that knows llama-server's HTTP routes
launch.py flags.py profile.py what a server is started with; profiles/ holds them as TOML
binary.py                     which program it is, and what its --help says
warm.py ladder.py             the warm prefix; less memory
gpu_queue.py                      whose turn it is on the GPU
managed.py external.py        our own server, or others', as the control API sees them
gpu.py health.py guard.py history.py alerts.py speed.py
                              NVML and what it means: heat, minutes kept, news, figures
api.py metrics.py proxy.py notify.py
                              control API, Prometheus, other programs, systemd
schedule.py                   profiles by the clock, and by hand
embedded.py embedded_flags.py the embedded llama.cpp server, with llama-server's flags
gguf_header.py fit.py advice.py placement.py cards.py
                              what a model needs, what fits, where it goes
pull.py hub.py                models from the hub, and their headers alone
gauge.py bench.py bench_server.py sweep.py versus.py bench_picture.py
                              measuring: one server, flags, two binaries
build.py recipe.py toolkit.py a server for the cards of this machine
plot.py                       the picture of the last hours, drawn in a process of its own
"""
