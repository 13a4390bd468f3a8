"""The system calls that a sandbox may not make, as a BPF program for the kernel.

A deny list, so that shells, compilers and interpreters work. It denies access to other processes, mounts,
namespaces and keys, kernel facilities with a long record of bugs, and memory that no limit counts. Numbers
are those of the kernel's headers (asm/unistd_64.h, asm-generic/unistd.h).

libseccomp is not used: its rules compare an argument once, so they cannot express a set of allowed values
(personality), and Debian 12's version does not know the newest mount calls.
"""

import errno
import platform
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
LOAD, JEQ, JGE, JSET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCH, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
X32 = 0x40000000

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

PROCESSES = "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise"
MOUNTS = (
    "mount umount2 pivot_root chroot open_tree open_tree_attr move_mount fsopen fsconfig "
    "fsmount fspick mount_setattr statmount listmount unshare setns"
)
KERNEL = (
    "add_key request_key keyctl bpf perf_event_open userfaultfd memfd_secret "
    "name_to_handle_at open_by_handle_at fanotify_init fanotify_mark kexec_load "
    "kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct "
    "quotactl quotactl_fd syslog settimeofday clock_settime clock_adjtime adjtimex "
    "sethostname setdomainname vhangup iopl ioperm modify_ldt mbind set_mempolicy "
    "migrate_pages move_pages lookup_dcookie uselib"
)
ABSENT = "clone3 openat2 io_uring_setup io_uring_enter io_uring_register"
UNSEEN_MEMORY = "memfd_create shmget msgget"

NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* that clone(2) takes
SET_ID = 0o6000
CREATES = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE
PERSONALITIES = (0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10

# Since 424 a call has the same number on all architectures.
COMMON = """
io_uring_setup 425 io_uring_enter 426 io_uring_register 427 open_tree 428 move_mount 429 fsopen 430
fsconfig 431 fsmount 432 fspick 433 clone3 435 openat2 437 pidfd_getfd 438 process_madvise 440
mount_setattr 442 quotactl_fd 443 memfd_secret 447 fchmodat2 452 statmount 457 listmount 458
open_tree_attr 467
"""

X86_64 = """
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

AARCH64 = """
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

# Positions of arguments: of the mode, or of flags that the mode follows.
MODE_ARGUMENTS = (
    "chmod 1 fchmod 1 fchmodat 2 fchmodat2 2 mkdir 1 mkdirat 2 mknod 1 mknodat 2 creat 1"
)
FLAGS_ARGUMENTS = "open 1 openat 2"


@dataclass(frozen=True, slots=True)
class Instruction:
    """A BPF instruction; `hit` and `miss` count instructions to skip."""

    code: int
    value: int
    hit: int = 0
    miss: int = 0

    def packed(self) -> bytes:
        return struct.pack("<HBBI", self.code, self.hit, self.miss, self.value)


@cache
def program(*, memory_is_counted: bool = False, machine: str = platform.machine()) -> bytes:
    """The filter for this machine; LookupError where its calls are not known.

    `memory_is_counted`: a cgroup limits the sandbox's memory, so memory that belongs to no process (memfd,
    System V) is allowed.
    """
    numbers = numbered({"x86_64": X86_64, "aarch64": AARCH64}[machine] + COMMON)
    code = [
        Instruction(LOAD, ARCH),
        Instruction(JEQ, AUDIT_ARCH[machine], hit=1),
        Instruction(RETURN, KILL),
        Instruction(LOAD, NUMBER),
    ]
    if machine == "x86_64":
        # x32 calls have the same architecture value and would pass every comparison.
        code += [Instruction(JGE, X32, miss=1), Instruction(RETURN, KILL)]
    absent = ABSENT if memory_is_counted else f"{ABSENT} {UNSEEN_MEMORY}"
    denied = {f"{PROCESSES} {MOUNTS} {KERNEL}": errno.EPERM, absent: errno.ENOSYS}
    for names, error in denied.items():
        for name in names.split():
            if name in numbers:  # not every machine has every call
                code += [Instruction(JEQ, numbers[name], miss=1), deny(error)]

    def check(name: str, *body: Instruction) -> None:
        """Add instructions for one call; `body` looks at its arguments and falls through where it is allowed."""
        if name in numbers:
            code.append(Instruction(JEQ, numbers[name], miss=len(body) + 1))
            code.extend([*body, Instruction(LOAD, NUMBER)])

    namespaces = Instruction(JSET, NEW_NAMESPACES, miss=1)
    check("clone", argument(0), namespaces, deny(errno.EPERM))
    terminal = [Instruction(JEQ, TIOCSTI, hit=1), Instruction(JEQ, TIOCLINUX, miss=1)]
    check("ioctl", argument(1), *terminal, deny(errno.EPERM))
    check("personality", argument(0), *allow_only(PERSONALITIES, errno.EPERM))
    families = (AF_UNIX, AF_INET, AF_INET6)
    check("socket", argument(0), *allow_only(families, errno.EAFNOSUPPORT))
    check("socketpair", argument(0), *allow_only((AF_UNIX,), errno.EAFNOSUPPORT))
    # No file with a set-id bit: on the host it would belong to the user who runs this program.
    set_id = [Instruction(JSET, SET_ID, miss=1), deny(errno.EPERM)]
    for name, at in numbered(MODE_ARGUMENTS).items():
        check(name, argument(at), *set_id)
    for name, at in numbered(FLAGS_ARGUMENTS).items():
        creates = Instruction(JSET, CREATES, miss=3)
        check(name, argument(at), creates, argument(at + 1), *set_id)
    code.append(Instruction(RETURN, ALLOW))
    return b"".join(instruction.packed() for instruction in code)


def numbered(text: str) -> dict[str, int]:
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def argument(index: int) -> Instruction:
    """Load the low 32 bits of an argument; the kernel reads no more of these arguments."""
    return Instruction(LOAD, ARGUMENTS + 8 * index)


def deny(error: int) -> Instruction:
    return Instruction(RETURN, ERRNO | error)


def allow_only(values: Sequence[int], error: int) -> list[Instruction]:
    equal = [Instruction(JEQ, value, hit=len(values) - n) for n, value in enumerate(values)]
    return [*equal, deny(error)]
