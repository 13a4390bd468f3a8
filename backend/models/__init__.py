"""Which models there are, what they need, and where they run.

profile.py            a model with its server flags and sampling; profiles/ holds them as TOML, embedders/ those for embeddings
gguf_header.py        the metadata of a model file, read without its weights; what a picture projector (mmproj) takes
pull.py               downloads from the hub; the header of a file that is still there
memory.py             what a model needs: weights, KV cache, compute buffers
fit.py                whether a profile fits this machine; start here
placement.py          the GPUs that a server can use, and which it gets, before each start
found.py              GGUF files of other programs on this machine
outlook.py            how a profile would run here, in one line, before it is downloaded
"""
