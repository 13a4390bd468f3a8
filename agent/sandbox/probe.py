"""Whether the sandbox works here, and what to do where it does not."""

_REMEDIES = {
    "setting up uid map: Permission denied": (
        "AppArmor forbids user namespaces: install the profile bwrap-userns-restrict "
        "(package apparmor-profiles), or one that allows userns for /usr/bin/bwrap."
    ),
}


def remedy(said: str) -> str:
    """One sentence for bubblewrap's message."""
    for message, advice in _REMEDIES.items():
        if message in said:
            return advice
    return said.strip() or "bubblewrap ended without a word."
