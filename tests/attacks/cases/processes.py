"""Other processes: their memory, environment, life; and processes that outlive a call."""

from functools import partial

from tests.attacks.attack import python, shell

_shell = partial(shell, "processes")
_python = partial(python, "processes")
_stays = partial(shell, "survivors")

_ENVIRONMENT = partial(shell, "environment")

ATTACKS = (
    _ENVIRONMENT("its own variables", "env"),
    _ENVIRONMENT("of process 1", "cat /proc/1/environ | tr '\\0' '\\n'"),
    _ENVIRONMENT("of its parent", "cat /proc/$PPID/environ | tr '\\0' '\\n'"),
    _ENVIRONMENT("of every process", "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'"),
    _ENVIRONMENT("command lines", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'"),
    _ENVIRONMENT("command lines by ps", "ps axeww"),
    _ENVIRONMENT("where the host keeps things", "cat /proc/1/cmdline /proc/$PPID/cmdline | tr '\\0' ' ' | grep -q '[s]tate/sandbox' && echo PWNED; tr '\\0' ' ' < /proc/{victim}/cmdline"),
    _shell("kill by number", "kill -0 {victim} && echo PWNED"),
    _shell("kill by name", "pkill -0 -f '[s]leep-s3cr3t' && echo PWNED"),
    _shell("change its limits", "prlimit --pid {victim} --core=0 && echo PWNED"),
    _shell("change its priority", "renice -n 5 -p {victim} && echo PWNED"),
    _shell("enter its namespaces", "nsenter -t {victim} -n true && echo PWNED"),
    _shell("see its open files", "ls /proc/{victim}/fd && echo PWNED"),
    _python("ptrace", """
if libc.ptrace(16, {victim}, 0, 0) == 0:  # PTRACE_ATTACH
    os.waitpid({victim}, 0x40000000)
    libc.ptrace(17, {victim}, 0, 0)
    won()"""),
    _python("ptrace of its own child", """
pid = os.fork()
if not pid:
    os._exit(0 if libc.ptrace(0, 0, 0, 0) == 0 else 1)
if os.waitpid(pid, 0)[1] == 0: won()"""),
    _python("read its memory", """
start = int(open("/proc/{victim}/maps").read().split("-")[0], 16)
piece = ctypes.create_string_buffer(16)
local = (ctypes.c_void_p * 2)(ctypes.addressof(piece), 16)
remote = (ctypes.c_void_p * 2)(start, 16)
if libc.process_vm_readv({victim}, local, 1, remote, 1, 0) == 16: won()"""),
    _python("its memory file", """
start = int(open("/proc/{victim}/maps").read().split("-")[0], 16)
with open("/proc/{victim}/mem", "rb") as memory:
    memory.seek(start); memory.read(16); won()"""),
    _python("a descriptor of it", """
pidfd = os.pidfd_open({victim})
if call(438, pidfd, 0, 0) >= 0: won()"""),
    _stays("in the background", "exec -a {marker} sleep 30 & disown; true"),
    _stays("in a session of its own", "(exec setsid bash -c 'exec -a {marker} sleep 30') > /dev/null 2>&1 & true"),
    _stays("past nohup", "nohup bash -c 'exec -a {marker} sleep 30' > /dev/null 2>&1 & true"),
    _stays("a daemon that ignores signals", """/usr/bin/python3 -c '
import os, signal
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for n in (1, 2, 3, 13, 15): signal.signal(n, signal.SIG_IGN)
for fd in (0, 1, 2): os.close(fd)
os.execv("/usr/bin/sleep", ["{marker}", "30"])'"""),
    _stays("by a user service", "systemd-run --user --unit {marker} sleep 30 && echo PWNED"),
    _stays("by at", "echo 'true {marker}' | at now && echo PWNED"),
)  # fmt: skip
