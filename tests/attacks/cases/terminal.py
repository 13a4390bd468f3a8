"""Output that would drive the terminal, or deceive the eyes, of a person who reads along."""

from functools import partial

from tests.attacks.attack import shell

_shell = partial(shell, "terminal")

ATTACKS = (
    _shell("the clipboard by OSC 52", r"printf '\033]52;c;cm0gLXJmIH4K\007'"),
    _shell("the title", r"printf '\033]0;title\033\\'"),
    _shell("clearing the screen", r"printf '\033[2J\033[H'"),
    _shell("one that does not end", r"printf 'a\033]0;endless'"),
    _shell("C1 controls", r"printf '\302\23331m red'"),
    _shell("a device query", r"printf '\033P+q544e\033\\'"),
    _shell("overwriting by carriage return", r"printf 'rm -rf /\rls       \n'"),
    _shell("overwriting by backspace", r"printf 'rm\b\bls\n'"),
    _shell("text that runs backwards", r"printf 'exe.\342\200\256fdp\n'"),
    _shell("isolated directions", r"printf '\342\201\247x\342\201\251\n'"),
    _shell("NUL and bell", r"printf 'a\0b\007c\n'"),
    _shell("bytes that are no text, then an escape", r"printf '\377\376\033[31m\n'"),
)
