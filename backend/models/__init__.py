"""Which models there are, what they need, and where they run.

profile.py            a model with everything it is started and asked with; profiles/ holds them as TOML, embedders/ those for vectors
gguf_header.py        what a model file says of itself, read without its weights
pull.py               downloads; the header of a file that is still at the hub
speech.py             the names of models that hear and voices that speak
memory.py             what a model needs: weights, KV cache, compute buffers
projector.py          what a projector of pictures takes, and the pixels that it uses
fit.py                whether a profile fits this machine; start here
placement.py          the GPUs that a server can use, and which it gets, before each start
found.py              GGUF files that other programs have left on this machine
outlook.py            what a profile would do here, in one line, before it is downloaded
"""
