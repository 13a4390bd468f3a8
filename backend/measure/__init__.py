"""Measures the server on a user's machine: `voltaire bench` and `voltaire bench sweep`.

Not to be confused with bench/ of the repository, which prints this project's own figures.

probe.py   sends completions to a llama-server and times them
bench.py   starts a server and measures it, with the GPUs' conditions; compares servers
sweep.py   which flags are the fastest, which of two servers to use
"""
