"""Installing: the wizard's steps, the configuration file, the systemd units.

wizard.py   the steps in order, each asked or given as an option, each finished before the next
engine.py   model and server: found, pulled, built
file.py     the configuration file, replaced at once, never in part
units.py    systemd: install, enable, check, remove
"""
