"""Which models there are, what they need, and where they run.

profile.py            a model with everything it is started and asked with; profiles/ holds them as TOML
profile_schedule.py   profiles by the clock, and by a manual choice
gguf_header.py        what a model file says of itself, read without its weights
remote_gguf.py        the same of a file that is still at the hub
pull.py               downloads
memory.py             what a model needs: weights, KV cache, compute buffers
fit.py                whether a profile fits this machine; start here
devices.py            the GPUs that a server can use
placement.py          which of them it gets, with which window, before each start
outlook.py            what a profile would do here, in one line, before it is downloaded
"""
