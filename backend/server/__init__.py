"""llama-server: started, warmed, watched, restarted; and servers that somebody else runs.

managed.py           the supervised server as the control API sees it, and the profile schedule
supervisor.py        starts and restarts it; takes requests to restart or switch the profile
memory_fallback.py   what to reduce when the GPU's memory is full
server_run.py        one run: loading, warm-up, watching, and why it ended
stall_detector.py    what counts as progress
canary.py            whether two conversations stay separate on it
diagnosis.py         why a server ended, in one sentence
known_faults.py      faults of builds that others reported
process.py           the child process and its log; how long to wait between two starts
launch.py            the program and the command line for a profile on this machine
flag_spellings.py    which flags a binary knows, and under which names
llama.py             llama-server's HTTP routes
warmup.py            prefills the fixed prefix before anybody waits for it
chat_states.py       chats' prompts as files, written and restored (slot files)
embedding.py         a second server, for embeddings
lending.py urgent.py   the card lent to other programs; a small model on the processor meanwhile
external.py          servers that somebody else runs
"""
