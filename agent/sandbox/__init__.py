"""Where every process of a tool runs: one bubblewrap per call, with the kernel's walls.

sandboxes.py   all chats' sandboxes, opened once by a program
sandbox.py     one chat's: run a command, and its files (files.py)
config.py      what they share: limits, repositories, the prepared rootfs (rootfs.py)
gitdirs.py     what of a repository's git stays closed; mountinfo.py looks whether it is
bubble.py      one bubblewrap: layout.py its arguments, seccomp.py its filter
actor.py       as whom it runs; porter.py does it for root as somebody lesser
beneath.py     openat2: files beneath a directory, whatever the path says
printed.py     what a command printed, cleaned and cut
"""
