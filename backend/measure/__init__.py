"""Measuring this machine's server for its user: `voltaire bench` and `voltaire bench sweep`.

Not to be confused with bench/ of the repository, which prints this project's own figures.

probe.py   completions sent to a llama-server, with their times
bench.py   rows of speeds with the conditions of the GPUs, two servers compared; a server of our own to measure
sweep.py   which flags are the fastest
choice.py  which of two servers stays
"""
