"""The system calls that a sandbox may not make, as a BPF program for the kernel.

A deny list: what a shell, compilers and interpreters need stays. HostRefused is what
reaches other processes, mounts, namespaces, keys, kernel facilities with a long
record of bugs, and memory that no limit sees. Numbers are those of the kernel's
own headers (asm/unistd_64.h, asm-generic/unistd.h).
"""

import errno
import platform
import struct
from dataclasses import dataclass
from functools import cache

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32 = 0x40000000

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_PROCESSES = "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise"
_MOUNTS = (
    "mount umount2 pivot_root chroot open_tree open_tree_attr move_mount fsopen fsconfig "
    "fsmount fspick mount_setattr statmount listmount unshare setns"
)
_KERNEL = (
    "add_key request_key keyctl bpf perf_event_open userfaultfd memfd_secret "
    "name_to_handle_at open_by_handle_at fanotify_init fanotify_mark kexec_load "
    "kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct "
    "quotactl quotactl_fd syslog settimeofday clock_settime clock_adjtime adjtimex "
    "sethostname setdomainname vhangup iopl ioperm modify_ldt mbind set_mempolicy "
    "migrate_pages move_pages lookup_dcookie uselib"
)
_ABSENT = "clone3 openat2 io_uring_setup io_uring_enter io_uring_register"
_UNSEEN_MEMORY = "memfd_create shmget msgget"

_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* that clone(2) takes
_SET_ID = 0o6000
_CREATES = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE
_PERSONALITIES = (0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_UNIX, _INET, _INET6 = 1, 2, 10

# Calls since 424 have one number everywhere.
_EVERYWHERE = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "openat2": 437,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "memfd_secret": 447,
    "fchmodat2": 452,
    "statmount": 457,
    "listmount": 458,
    "open_tree_attr": 467,
}

_X86_64 = """
open 2 ioctl 16 shmget 29 socket 41 socketpair 53 clone 56 msgget 68 mkdir 83 creat 85
chmod 90 fchmod 91 ptrace 101 syslog 103 mknod 133 uselib 134 personality 135 vhangup 153
modify_ldt 154 pivot_root 155 adjtimex 159 chroot 161 acct 163 settimeofday 164 mount 165
umount2 166 swapon 167 swapoff 168 reboot 169 sethostname 170 setdomainname 171 iopl 172
ioperm 173 init_module 175 delete_module 176 quotactl 179 lookup_dcookie 212
clock_settime 227 mbind 237 set_mempolicy 238 kexec_load 246 add_key 248 request_key 249
keyctl 250 migrate_pages 256 openat 257 mkdirat 258 mknodat 259 fchmodat 268 unshare 272
move_pages 279 perf_event_open 298 fanotify_init 300 fanotify_mark 301
name_to_handle_at 303 open_by_handle_at 304 clock_adjtime 305 setns 308
process_vm_readv 310 process_vm_writev 311 kcmp 312 finit_module 313 memfd_create 319
kexec_file_load 320 bpf 321 userfaultfd 323
"""

_AARCH64 = """
lookup_dcookie 18 ioctl 29 mknodat 33 mkdirat 34 umount2 39 mount 40 pivot_root 41
chroot 51 fchmod 52 fchmodat 53 openat 56 vhangup 58 quotactl 60 acct 89 personality 92
unshare 97 kexec_load 104 init_module 105 delete_module 106 clock_settime 112 syslog 116
ptrace 117 reboot 142 sethostname 161 setdomainname 162 settimeofday 170 adjtimex 171
msgget 186 shmget 194 socket 198 socketpair 199 add_key 217 request_key 218 keyctl 219
clone 220 swapon 224 swapoff 225 mbind 235 set_mempolicy 237 migrate_pages 238
move_pages 239 perf_event_open 241 fanotify_init 262 fanotify_mark 263
name_to_handle_at 264 open_by_handle_at 265 clock_adjtime 266 setns 268
process_vm_readv 270 process_vm_writev 271 kcmp 272 finit_module 273 memfd_create 279
bpf 280 userfaultfd 282 kexec_file_load 294
"""


@dataclass(frozen=True, slots=True)
class _Op:
    """One BPF instruction; `hit` and `miss` count instructions to skip."""

    code: int
    value: int
    hit: int = 0
    miss: int = 0

    def packed(self) -> bytes:
        return struct.pack("<HBBI", self.code, self.hit, self.miss, self.value)


@cache
def program(*, memory_is_counted: bool = False, machine: str = platform.machine()) -> bytes:
    """The filter for this machine; LookupError where its calls are not known.

    `memory_is_counted`: a memory cgroup holds the sandbox, so that memory which
    belongs to no process (memfd, System V) may be had.
    """
    numbers = _numbers(machine)
    ops = [*_arch(_AUDIT_ARCH[machine]), *_foreign_numbers(machine)]
    ops += _refused(numbers, f"{_PROCESSES} {_MOUNTS} {_KERNEL}", errno.EPERM)
    ops += _refused(numbers, _ABSENT, errno.ENOSYS)
    if not memory_is_counted:
        ops += _refused(numbers, _UNSEEN_MEMORY, errno.ENOSYS)
    ops += _conditions(numbers)
    ops.append(_Op(_RETURN, _ALLOW))
    return b"".join(op.packed() for op in ops)


def _numbers(machine: str) -> dict[str, int]:
    words = {"x86_64": _X86_64, "aarch64": _AARCH64}[machine].split()
    own = {name: int(number) for name, number in zip(words[::2], words[1::2], strict=True)}
    return own | _EVERYWHERE


def _arch(arch: int) -> list[_Op]:
    return [
        _Op(_LOAD, _ARCH),
        _Op(_JEQ, arch, hit=1),
        _Op(_RETURN, _KILL),
        _Op(_LOAD, _NUMBER),
    ]


def _foreign_numbers(machine: str) -> list[_Op]:
    """x32 calls share the architecture's mark and would slip past every comparison."""
    if machine != "x86_64":
        return []
    return [_Op(_JGE, _X32, miss=1), _Op(_RETURN, _KILL)]


def _refused(numbers: dict[str, int], names: str, error: int) -> list[_Op]:
    ops = []
    for name in names.split():
        if name in numbers:  # not every machine has every call
            ops += [_Op(_JEQ, numbers[name], miss=1), _Op(_RETURN, _ERRNO | error)]
    return ops


def _conditions(numbers: dict[str, int]) -> list[_Op]:
    ops = _when(numbers["clone"], _argument(0), [_Op(_JSET, _NEW_NAMESPACES)], errno.EPERM)
    terminal = [_Op(_JEQ, _TIOCSTI), _Op(_JEQ, _TIOCLINUX)]
    ops += _when(numbers["ioctl"], _argument(1), terminal, errno.EPERM)
    ops += _unless(numbers["personality"], _argument(0), _PERSONALITIES, errno.EPERM)
    ops += _unless(numbers["socket"], _argument(0), (_UNIX, _INET, _INET6), errno.EAFNOSUPPORT)
    ops += _unless(numbers["socketpair"], _argument(0), (_UNIX,), errno.EAFNOSUPPORT)
    return ops + _set_ids(numbers)


_MODE_AT = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "mkdir": 1, "mkdirat": 2}
_MODE_AT |= {"mknod": 1, "mknodat": 2, "creat": 1}
_FLAGS_AT = {"open": 1, "openat": 2}


def _set_ids(numbers: dict[str, int]) -> list[_Op]:
    """No file with a set-id bit: on the host it would belong to the user who runs us."""
    ops = []
    for name, at in _MODE_AT.items():
        if name in numbers:
            ops += _when(numbers[name], _argument(at), [_Op(_JSET, _SET_ID)], errno.EPERM)
    for name, at in _FLAGS_AT.items():
        if name in numbers:
            ops += _when_creating(numbers[name], _argument(at), _argument(at + 1))
    return ops


def _argument(index: int) -> int:
    """Offset of an argument's low 32 bits; the kernel reads no more of these."""
    return _ARGUMENTS + 8 * index


def _when(number: int, at: int, tests: list[_Op], error: int) -> list[_Op]:
    body = [_Op(_LOAD, at)]
    for test in tests:
        body += [_Op(test.code, test.value, miss=1), _Op(_RETURN, _ERRNO | error)]
    return _only_for(number, body)


def _unless(number: int, at: int, allowed: tuple[int, ...], error: int) -> list[_Op]:
    body = [_Op(_LOAD, at)]
    body += [_Op(_JEQ, value, hit=len(allowed) - n) for n, value in enumerate(allowed)]
    return _only_for(number, [*body, _Op(_RETURN, _ERRNO | error)])


def _when_creating(number: int, flags: int, mode: int) -> list[_Op]:
    body = [_Op(_LOAD, flags), _Op(_JSET, _CREATES, miss=3), _Op(_LOAD, mode)]
    body += [_Op(_JSET, _SET_ID, miss=1), _Op(_RETURN, _ERRNO | errno.EPERM)]
    return _only_for(number, body)


def _only_for(number: int, body: list[_Op]) -> list[_Op]:
    body = [*body, _Op(_LOAD, _NUMBER)]
    return [_Op(_JEQ, number, miss=len(body)), *body]
