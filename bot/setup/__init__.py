"""What `voltaire setup` installs: the bot's account, its first owner, systemd units."""


class SetupError(Exception):
    """A step cannot be finished; `str` is one sentence, and what was saved so far stays."""
