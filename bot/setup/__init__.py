"""Installing Voltaire: the wizard behind `voltaire setup`.

wizard.py        the steps in order: each asked or given as an option, each saved before the next
models.py        what the wizard asks of the backend, which the command line gives it
telegram.py      the bot's account, and its first owner by a pairing link
config_file.py   the configuration file, replaced whole
units.py         systemd units: install, renew, remove
"""


class SetupError(Exception):
    """A step cannot be finished; `str` is one sentence, and what was saved so far stays."""
