"""What an operator does to an installation, from setup to purge, under a systemd of its own.

releases.py  the version that runs and the next one, as a repository and as wheels, and what they need
site.py      one installation on a booted machine: its commands, units, phone and files
steps.py     what is done to it, in order
__main__.py  the command line; one line per step
"""
