"""systemd units: rendered for this installation, enabled, checked, removed; a command in the background.

Installed by root they are system units with a user of their own, else units of the user.
"""

import glob
import grp
import os
import pwd
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from backend.client import default_socket
from bot import config_file
from bot.installed_program import Environment
from bot.secret_values import secret_files
from bot.settings import ConfigurationError
from bot.setup import SetupError

TEMPLATES = Path(__file__).resolve().parents[2] / "systemd"
SERVICES = ("voltaire-backend.service", "voltaire-bot.service")
UNITS = (*SERVICES, "voltaire.target")
COMPILE = "voltaire-compile"  # the transient unit that compiles a server after the wizard
MACHINE_UNITS = Path("/etc/systemd/system")
MACHINE_STATE = Path("/var/lib/voltaire")
SYSUSERS = Path("/usr/lib/sysusers.d/voltaire.conf")
TMPFILES = Path("/usr/lib/tmpfiles.d/voltaire.conf")
RUNTIME = Path("/run/user")
LINGERS = Path("run") / "lingers"  # in the state folder, in no backup
USER = "voltaire"  # its group has the same name
HIDDEN = ("/home", "/root", "/run/user")  # by ProtectHome=tmpfs
LOOPBACK = "# The server listens on loopback alone.\nIPAddressDeny=any\nIPAddressAllow=localhost"
# The environment by which a command finds its programs and folders; a transient unit has the manager's own.
PASSED = ("PATH", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "CUDA_HOME", "CUDA_PATH")
SECONDS = 60


@dataclass(frozen=True, slots=True)
class SystemdScope:
    """The systemd that units go to, the machine's or this user's. `systemctl` may be another program (tests)."""

    root: bool
    folder: Path
    systemctl: str = "systemctl"

    @classmethod
    def here(cls) -> "SystemdScope":
        if os.geteuid() == 0:
            return cls(True, MACHINE_UNITS)
        home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        return cls(False, Path(home) / "systemd" / "user")

    @classmethod
    def installed(cls) -> "SystemdScope":
        """Where units are installed: this user's own, else the machine's, else where they would be."""
        here, machine = cls.here(), cls(True, MACHINE_UNITS)
        own = (here.folder / UNITS[1]).exists()
        return machine if (machine.folder / UNITS[1]).exists() and not own else here

    def present_units(self) -> list[str]:
        """The names of the units that are installed."""
        return [name for name in UNITS if (self.folder / name).exists()]

    @property
    def flags(self) -> tuple[str, ...]:
        return () if self.root else ("--user",)


@dataclass(frozen=True, slots=True)
class Installation:
    """What the units are rendered with. `token` is the file with Telegram's, None without Telegram. `repos` are
    (path, writable), folders of documents, skills and MCP servers too; `memory` is the bot's limit."""

    config: Path
    token: Path | None
    state: Path
    managed: bool = True
    repos: tuple[tuple[Path, bool], ...] = ()
    memory: str = "6G"

    @property
    def values(self) -> Mapping[str, str]:
        """The values of the units' placeholders. Repositories and the program are bound past ProtectHome and ProtectSystem."""

        def bind(path: Path, *, writable: bool = False) -> str:
            escaped = str(path).replace(":", "\\:")
            return f"{'BindPaths' if writable else 'BindReadOnlyPaths'}={quoted(f'-{escaped}')}"

        # systemd makes the usual folder; another one, or what a link leads to, is there already.
        usual = self.state == MACHINE_STATE and not self.state.is_symlink()
        made = "StateDirectory=voltaire\nStateDirectoryMode=0700"
        credential = f"LoadCredential=telegram-token:{self.token}" if self.token else ""
        return {
            "VOLTAIRE": quoted(str(Path(sys.executable).with_name("voltaire"))),
            "CONFIG": quoted(f"VOLTAIRE_CONFIG={self.config}"),
            "TOKEN": credential.replace("%", "%%"),
            "GROUPS": " ".join(filter(group_exists, ("video", "render"))),  # of the cards' devices
            "MEMORY": self.memory,
            "STATE": made if usual else bind(self.state.resolve(), writable=True),
            "NETWORK": LOOPBACK if self.managed else "",
            "PROGRAM": "\n".join(map(bind, program_folders())),
            "REPOS": "\n".join(bind(path, writable=writable) for path, writable in self.repos),
        }


def quoted(text: str) -> str:
    """Quote a text as one word of a unit file."""
    if not re.search(r"[\s\"'\\%]", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def group_exists(name: str) -> bool:
    with suppress(KeyError):
        return bool(grp.getgrnam(name))
    return False


def program_folders(hidden: Iterable[str] = HIDDEN) -> list[Path]:
    """The folders of the program and its Python in `hidden` folders, which the units have to bind."""
    places = {Path(__file__).parents[2], Path(sys.prefix), Path(sys.base_prefix).resolve()}
    return sorted(place for place in places if any(place.is_relative_to(h) for h in hidden))


def systemd_runs() -> bool:
    """Whether systemd runs this machine."""
    return Path("/run/systemd/system").is_dir()


def installed(scope: SystemdScope) -> list[str]:
    """The names of the services whose units are installed."""
    return [name for name in SERVICES if systemd_runs() and (scope.folder / name).exists()]


def render(scope: SystemdScope, installation: Installation) -> dict[str, str]:
    """Render the text of each unit."""
    folder = TEMPLATES / ("system" if scope.root else "user")
    texts = {name: (folder / name).read_text("utf-8") for name in UNITS}
    for key, value in installation.values.items():
        texts = {name: text.replace(f"@{key}@", value) for name, text in texts.items()}
    return texts


def install(scope: SystemdScope, installation: Installation) -> bool:
    """Write, enable and start the units; False where they end when the user logs out. SetupError when systemd
    refuses."""
    lingers = True
    if scope.root:
        make_user()
        # The services read the configuration, and own what the wizard pulled and built.
        run("chown", "root:voltaire", str(installation.config))
        run("chmod", "0640", str(installation.config))
        if not installation.state.is_symlink():
            installation.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        if installation.state.exists():
            run("chown", "-R", "voltaire:voltaire", str(installation.state.resolve()))
        # The services' user cannot write there: after `uv tool install` each start would compile all modules.
        packages = sysconfig.get_path("purelib")
        run(sys.executable, "-m", "compileall", "-q", packages, check=False, seconds=600)
    elif scope.systemctl == "systemctl":
        lingers = enable_linger(installation.state)  # first: it starts the systemd of the user
        run_systemctl(scope, "--wait", "is-system-running", check=False)  # which takes a moment
        run_systemctl(scope, "show-environment")
    write_units(scope, installation)
    run_systemctl(scope, "enable", "voltaire.target")
    run_systemctl(scope, "restart", "voltaire.target")  # and both services with it, once
    return lingers


def renew(scope: SystemdScope, installation: Installation) -> list[str]:
    """Rewrite and restart the units after an update; return the names of those that were installed."""
    there = scope.present_units()
    if there:
        write_units(scope, installation)
        run_systemctl(scope, "restart", *SERVICES)
    return there


def write_units(scope: SystemdScope, installation: Installation) -> None:
    scope.folder.mkdir(parents=True, exist_ok=True)
    for name, text in render(scope, installation).items():
        (scope.folder / name).write_text(text, "utf-8")
    run_systemctl(scope, "daemon-reload")


def enable_linger(state: Path) -> bool:
    """Let this user's services run while nobody is logged in; False where that is not allowed.

    A file in `state` marks that they did not before, so that `purge` undoes it.
    """
    try:
        before = run(
            "loginctl", "show-user", str(os.geteuid()), "--property=Linger", "--value", check=False
        )
        run("loginctl", "enable-linger")
    except SetupError:
        return False
    if before != "yes":
        mark = state / LINGERS
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark.touch()
    return True


def remove(scope: SystemdScope) -> list[str]:
    """Stop and remove the units, and a compilation in the background; return the names of those that were installed."""
    with suppress(SetupError):
        run_systemctl(scope, "stop", f"{COMPILE}.service", check=False)
    there = scope.present_units()
    if there:
        run_systemctl(scope, "disable", "--now", "voltaire.target", *there)
        for name in there:
            (scope.folder / name).unlink()
        run_systemctl(scope, "daemon-reload")
    return there


def leftovers(scope: SystemdScope, config: Path, state: Path) -> list[str]:
    """What stays on the machine once the units are removed, except the program itself."""
    folders: list[Path] = []
    for place in dict.fromkeys((state.resolve(), state)):  # a link to it goes last
        for ending in ("", "-before-*", "-restored-*", "-upgrade"):
            folders += sorted(place.parent.glob(glob.escape(place.name) + ending))
    folders += [Environment().aside]
    if (
        scope.root
        and state != MACHINE_STATE
        and MACHINE_STATE.is_dir()
        and not any(MACHINE_STATE.iterdir())
    ):
        folders += [MACHINE_STATE]  # made with the user
    if not (socket := default_socket(state).parent).is_relative_to(state):
        folders += [socket]  # left by a backend that was killed
    secrets = {config.parent / name for name in ("telegram-token", "matrix-password")}
    with suppress(ConfigurationError):  # a restore puts secret files of other names there
        named = secret_files(config_file.read(config))
        secrets |= {path for _, path in named if path.parent == config.parent}
    ours = [config, *sorted(secrets), config.parent / "profiles"]
    found = [str(path) for path in (*folders, *ours) if path.exists()]
    if scope.root:
        found += [
            str(path) for path in (SYSUSERS, TMPFILES, Path("/run/voltaire")) if path.exists()
        ]
        found += [f"the user {USER}"] if user_exists() else []
    return found


def user_exists() -> bool:
    with suppress(KeyError):
        return bool(pwd.getpwnam(USER))
    return False


def purge(scope: SystemdScope, config: Path, state: Path) -> list[str]:
    """Delete the leftovers and return their names. Raises SetupError for a folder that is no state of Voltaire."""
    ours = any((state / name).exists() for name in ("voltaire.db", "matrix"))
    if state.exists() and not ours and any(state.iterdir()):
        raise SetupError(f"{state} holds no state of Voltaire; nothing was deleted.")
    gone = leftovers(scope, config, state)
    if (state / LINGERS).exists():
        run("loginctl", "disable-linger", check=False)
    for name in gone:
        path = Path(name)
        if path.is_dir() and not path.is_symlink():
            while path.exists():
                with suppress(FileNotFoundError):  # another process removed a file, as SQLite does
                    shutil.rmtree(path)
        elif path.is_absolute():
            path.unlink()
    with suppress(OSError):  # others' files stay in it
        config.parent.rmdir()
    if scope.root and user_exists():
        run("userdel", USER)
    if scope.root and group_exists(USER):
        run("groupdel", USER)
    return gone


def journal(scope: SystemdScope, unit: str) -> str:
    """The command that shows what a unit wrote."""
    return " ".join(["journalctl", *scope.flags, "-u", unit])


def unit_states(scope: SystemdScope) -> dict[str, str]:
    """Return the state of each service in systemd's words; "unknown" where systemd does not answer."""
    states = dict.fromkeys(SERVICES, "unknown")
    with suppress(SetupError):
        for name in states:
            states[name] = run_systemctl(scope, "is-active", name, check=False) or "unknown"
    return states


def make_user() -> None:
    """Make the services' user and folders, as sysusers.d and tmpfiles.d describe them."""
    for source, target, program in (
        ("voltaire.sysusers", SYSUSERS, ["systemd-sysusers"]),
        ("voltaire.tmpfiles", TMPFILES, ["systemd-tmpfiles", "--create"]),
    ):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(TEMPLATES / source, target)
        run(*program, str(target))


# -- a command that goes on after the wizard has ended ------------------------


def start_in_background(scope: SystemdScope, command: Sequence[str], log: Path) -> str:
    """Start a command at the lowest priority; return a sentence that says where its output goes.

    Where systemd runs, it is a transient unit, so that it outlives the login; else a process in a
    session of its own.
    """
    if systemd_runs() and shutil.which("systemd-run"):
        with suppress(SetupError):
            run(*transient_unit(scope, command))
            return f"Its output: {journal(scope, COMPILE)}"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        subprocess.Popen(
            [*lowest_priority(), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return f"Its output: {log}"


def transient_unit(scope: SystemdScope, command: Sequence[str]) -> list[str]:
    passed = [f"--setenv={name}={os.environ[name]}" for name in PASSED if name in os.environ]
    idle = ("--property=Nice=19", "--property=IOSchedulingClass=idle")
    unit = (f"--unit={COMPILE}", "--collect", "--description=Compiling a llama-server for Voltaire")
    return ["systemd-run", *scope.flags, *unit, *idle, *passed, "--", *command]


def lowest_priority() -> list[str]:
    """The words before a command that lower its priority for processor and disk."""
    ionice = ["ionice", "-c", "3"] if shutil.which("ionice") else []
    return ["nice", "-n", "19", *ionice]


# -- programs -------------------------------------------------------------------


def run_systemctl(scope: SystemdScope, *words: str, check: bool = True) -> str:
    """Run systemctl, with the socket of the user's systemd where the login names none or another's (su, sudo, cron)."""
    runtime = RUNTIME / str(os.geteuid())
    named = os.environ.get("XDG_RUNTIME_DIR", "")
    if not scope.root and not os.access(named, os.W_OK) and runtime.is_dir():
        os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    try:
        return run(scope.systemctl, *scope.flags, *words, check=check)
    except SetupError as error:
        if scope.root or not re.search("bus|systemd1", str(error), re.IGNORECASE):
            raise
        name = os.environ.get("LOGNAME") or str(os.geteuid())  # in a container it may have none
        raise SetupError(
            f"systemd does not run for the user {name} here: {error} Log in as {name} itself, by ssh or with"
            f" `machinectl shell {name}@`, not by su or sudo; or, as an administrator, run"
            f" `loginctl enable-linger {name}` first. Then try again."
        ) from None


def run(*argv: str, check: bool = True, seconds: float = SECONDS) -> str:
    """Run a program and return its output. Raises SetupError if it cannot be run, or fails and `check` is set."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds, check=False)
    except FileNotFoundError:
        raise SetupError(f"{argv[0]} is not installed here.") from None
    except OSError as error:  # PermissionError where PATH holds a folder that may not be searched
        raise SetupError(f"{argv[0]} cannot be run: {error.strerror}.") from None
    except subprocess.TimeoutExpired:
        raise SetupError(f"`{' '.join(argv)}` did not end within {seconds:.0f} s.") from None
    if check and done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise SetupError(f"`{' '.join(argv)}` failed: {last.rstrip('.')}.")
    return done.stdout.strip()
