"""Measuring this machine's server for its user: `voltaire bench` and `voltaire bench sweep`.

Not to be confused with bench/ of the repository, which prints this project's own figures.

probe.py           completions sent to a llama-server, with their times
bench.py           rows of speeds with the conditions of the GPUs; a server of our own to measure
comparison.py      two servers' rows: which is faster
sweep.py           which flags are the fastest
bench_picture.py   rows as a picture
"""
