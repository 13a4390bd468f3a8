"""A command on a machine that lets nobody make namespaces: python -m fakes.no_namespaces HOW COMMAND...

filter    as containers do it: a system call filter answers EPERM
sysctl    as hardened machines do it: user.max_user_namespaces is 0, in a user namespace of our own
"""

import ctypes
import errno
import os
import platform
import sys
from pathlib import Path

from agent.sandbox.seccomp import (
    AARCH64,
    ALLOW,
    ARGUMENTS,
    COMMON,
    ERRNO,
    JEQ,
    JSET,
    LOAD,
    NEW_NAMESPACES,
    NUMBER,
    RETURN,
    X86_64,
    Instruction,
    numbered,
)

NO_NEW_PRIVILEGES, SET_FILTER, FILTER_MODE = 38, 22, 2  # of prctl
NEW_USER = 0x10000000
SYSCTL = Path("/proc/sys/user/max_user_namespaces")

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def refuse_by_filter() -> None:
    number = numbered({"x86_64": X86_64, "aarch64": AARCH64}[platform.machine()] + COMMON)
    code = [
        Instruction(LOAD, NUMBER),
        Instruction(JEQ, number["unshare"], hit=5),
        Instruction(JEQ, number["clone3"], hit=5),
        Instruction(JEQ, number["clone"], miss=2),
        Instruction(LOAD, ARGUMENTS),
        Instruction(JSET, NEW_NAMESPACES, hit=1),
        Instruction(RETURN, ALLOW),
        Instruction(RETURN, ERRNO | errno.EPERM),
        Instruction(RETURN, ERRNO | errno.ENOSYS),
    ]
    packed = ctypes.create_string_buffer(b"".join(each.packed() for each in code))
    program = _Program(len(code), ctypes.cast(packed, ctypes.c_void_p))
    _called(_libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _called(_libc.prctl(SET_FILTER, FILTER_MODE, ctypes.byref(program)))


def refuse_by_sysctl() -> None:
    """Root keeps all of its users: a child that stays outside maps them."""
    user, group, us = os.geteuid(), os.getegid(), os.getpid()
    inside, made = os.pipe()
    if user == 0 and os.fork() == 0:
        os.read(inside, 1)
        for name in ("uid_map", "gid_map"):
            Path(f"/proc/{us}/{name}").write_text("0 0 65536")
        os._exit(0)
    _called(_libc.unshare(NEW_USER))
    if user == 0:
        os.write(made, b"x")
        os.wait()
    else:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    SYSCTL.write_text("0")


def _called(result: int) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


if __name__ == "__main__":
    {"filter": refuse_by_filter, "sysctl": refuse_by_sysctl}[sys.argv[1]]()
    os.execv(sys.argv[2], sys.argv[2:])
