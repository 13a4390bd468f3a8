"""Namespaces, mounts, privileges, and the kernel's seldom used corners."""

from functools import partial

from tests.attacks.attack import python, shell

_shell = partial(shell, "kernel")
_python = partial(python, "kernel")
_setid = partial(shell, "privileges")

_X86 = "x86 = os.uname().machine == 'x86_64'\n"

ATTACKS = (
    _shell("a user namespace", "unshare --user --map-root-user true && echo PWNED"),
    _shell("a mount namespace", "unshare --mount true && echo PWNED"),
    _shell("a network namespace", "unshare --user --net true && echo PWNED"),
    _shell("a mount", "unshare --user --map-root-user --mount mount -t tmpfs none /tmp && echo PWNED"),
    _shell("another bubblewrap inside", "bwrap --unshare-user --ro-bind / / true && echo PWNED"),
    _shell("the kernel's log", "dmesg 2>/dev/null | grep -q . && echo PWNED"),
    _shell("addresses in the kernel", "grep -v '^0* ' /proc/kallsyms | head -1 | grep -q . && echo PWNED"),
    _shell("without address randomisation", "setarch -R true && echo PWNED"),
    _python("a root of its own", """
os.makedirs("/tmp/root", exist_ok=True)
pid = os.fork()
if not pid:
    os.chroot("/tmp/root"); won(); os._exit(0)
os.waitpid(pid, 0)"""),
    _python("a namespace by clone", _X86 + """
pid = call(56 if x86 else 220, 0x10000000 | 17, 0, 0, 0, 0)
if pid == 0: os._exit(0)
if pid > 0: won()"""),
    _python("a namespace by clone3", """
arguments = struct.pack("11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
pid = call(435, arguments, len(arguments))
if pid == 0: os._exit(0)
if pid > 0: won()"""),
    _python("a new mount by fsopen", """
if call(430, b"tmpfs", 0) >= 0: won()"""),
    _python("a copy of a mount", """
if call(428, -100, b"/", 1) >= 0: won()"""),
    _python("keys of the kernel", _X86 + """
if call(248 if x86 else 217, b"user", b"voltaire", b"x", 1, -2) > 0: won()"""),
    _python("a BPF program", _X86 + """
if call(321 if x86 else 280, 0, struct.pack("12I", 2, 4, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0), 48) >= 0: won()"""),
    _python("performance counters", _X86 + """
event = struct.pack("IIQ", 1, 120, 0) + bytes(104)
if call(298 if x86 else 241, event, 0, -1, -1, 0) >= 0: won()"""),
    _python("userfaultfd", _X86 + """
if call(323 if x86 else 282, 1) >= 0: won()"""),
    _python("files by handle", _X86 + """
handle = struct.pack("Ii", 128, 0) + bytes(128)
if call(303 if x86 else 264, -100, b"/", ctypes.create_string_buffer(handle), ctypes.byref(ctypes.c_int()), 0) >= 0: won()"""),
    _python("loading a module", _X86 + """
if call(175 if x86 else 105, 0, 0, b"") != -errno.EPERM: won()"""),
    _python("watching all files", _X86 + """
if call(300 if x86 else 262, 0x200, 0) >= 0: won()"""),
    _python("memory that cannot be inspected", """
if call(447, 0) >= 0: won()"""),
    _python("the system's name", """
if call(170 if os.uname().machine == "x86_64" else 161, os.uname().nodename.encode(), len(os.uname().nodename)) == 0: won()"""),
    _python("typing into a terminal", """
import fcntl, pty, termios
pid, master = pty.fork()
if not pid:
    try: fcntl.ioctl(0, termios.TIOCSTI, b"x"); os._exit(7)
    except OSError as error: os._exit(7 if error.errno == errno.EIO else 0)
if os.waitpid(pid, 0)[1] == 7 << 8: won()"""),
    _setid("a set-uid file by chmod", "cp /usr/bin/true s; chmod 4755 s"),
    _setid("a set-gid file by chmod", "cp /usr/bin/true s; chmod g+s s"),
    _setid("a set-uid file by install", "install -m 4755 /usr/bin/true s"),
    python("privileges", "a set-uid file by open", """
os.umask(0); os.close(os.open("s2", os.O_CREAT | os.O_WRONLY, 0o4755))"""),
    python("privileges", "a set-uid file by fchmodat2", """
open("s3", "w").close()
call(452, -100, b"s3", 0o4755, 0)"""),
    _setid("a device file", "mknod disk b 8 0; mknod memory c 1 1"),
    _setid("capabilities", "grep -q '^CapEff:.*[1-9a-f]' /proc/self/status && echo PWNED"),
    _setid("capabilities to come", "grep -q '^CapBnd:.*[1-9a-f]' /proc/self/status && echo PWNED"),
    _setid("privileges by exec", "grep -q '^NoNewPrivs:.0' /proc/self/status && echo PWNED"),
    _setid("to be root", "[ $(id -u) = 0 ] || sudo -n true || su -c true < /dev/null && echo PWNED"),
    _setid("limits raised", "ulimit -Hn 900000 && ulimit -n 900000 && echo PWNED; ulimit -c unlimited && echo PWNED"),
)  # fmt: skip
