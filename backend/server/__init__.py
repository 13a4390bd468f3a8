"""llama-server, from the profile to its end; what restarts a server that hangs.

managed.py           our own server as the control API sees it, and switches by the clock
supervisor.py        starts it, and starts it again; takes requests to restart or switch
restart_backoff.py   how long it waits between two starts
memory_fallback.py   what it gives up when the GPU's memory is full
server_run.py        one run: loading, warm-up, watching it serve, the end
stall_detector.py    what counts as progress
diagnosis.py         why a server ended, in one sentence
process.py           the child process and its log
launch.py            the program, and the command line for a profile on this machine
flags.py             which flags it knows under which names
llama.py             llama-server's HTTP routes
warmup.py            the fixed prefix, read before anybody waits for it
embedding.py         a second one, for vectors
external.py          servers that others run
"""
