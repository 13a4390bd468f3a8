"""The filter, run by a small machine of our own for both processors."""

import errno
import platform
import struct

import pytest

from agent.sandbox.sandbox import Sandbox
from agent.sandbox.seccomp import program

ALLOW, KILL = 0x7FFF0000, 0x80000000
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def verdict(
    machine: str, number: int, *arguments: int, arch: int = 0, counted: bool = False
) -> int:
    """What the kernel would answer: 0, an errno, or -1 for the end of the process."""
    given = struct.pack("<iIQ6Q", number, arch or ARCH[machine], 0, *(*arguments, *[0] * 6)[:6])
    code = program(machine=machine, memory_is_counted=counted)
    result = _run(list(struct.iter_unpack("<HBBI", code)), given)
    return {ALLOW: 0, KILL: -1}.get(result, result & 0xFFFF)


def _run(ops: list[tuple[int, ...]], given: bytes) -> int:
    at = value = 0
    while True:
        code, hit, miss, k = ops[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("<I", given, k)
        elif code == 0x06:
            return k
        else:
            true = {0x15: value == k, 0x35: value >= k, 0x45: bool(value & k)}[code]
            at += hit if true else miss


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
class TestBoth:
    def test_its_size_is_one_the_kernel_takes(self, machine: str) -> None:
        assert len(program(machine=machine)) // 8 < 4096

    def test_other_architectures_end_the_process(self, machine: str) -> None:
        other = next(arch for name, arch in ARCH.items() if name != machine)
        assert verdict(machine, 0, arch=other) == -1
        assert verdict(machine, 0, arch=0x40000003) == -1

    @pytest.mark.parametrize(
        ("numbers", "error"),
        [
            ({"x86_64": 101, "aarch64": 117}, errno.EPERM),  # ptrace
            ({"x86_64": 165, "aarch64": 40}, errno.EPERM),  # mount
            ({"x86_64": 272, "aarch64": 97}, errno.EPERM),  # unshare
            ({"x86_64": 250, "aarch64": 219}, errno.EPERM),  # keyctl
            ({"x86_64": 321, "aarch64": 280}, errno.EPERM),  # bpf
            ({"x86_64": 304, "aarch64": 265}, errno.EPERM),  # open_by_handle_at
            ({"x86_64": 467, "aarch64": 467}, errno.EPERM),  # open_tree_attr
            ({"x86_64": 435, "aarch64": 435}, errno.ENOSYS),  # clone3
            ({"x86_64": 425, "aarch64": 425}, errno.ENOSYS),  # io_uring_setup
            ({"x86_64": 319, "aarch64": 279}, errno.ENOSYS),  # memfd_create
            ({"x86_64": 0, "aarch64": 63}, 0),  # read
            ({"x86_64": 59, "aarch64": 221}, 0),  # execve
            ({"x86_64": 62, "aarch64": 129}, 0),  # kill
        ],
    )
    def test_calls(self, machine: str, numbers: dict[str, int], error: int) -> None:
        assert verdict(machine, numbers[machine]) == error

    def test_memory_of_nobody_may_be_had_where_it_is_counted(self, machine: str) -> None:
        number = {"x86_64": 319, "aarch64": 279}[machine]
        assert verdict(machine, number, counted=True) == 0

    @pytest.mark.parametrize("flag", [0x20000, 0x02000000, 0x10000000, 0x20000000, 0x40000000])
    def test_clone_makes_processes_but_no_namespaces(self, machine: str, flag: int) -> None:
        clone = {"x86_64": 56, "aarch64": 220}[machine]
        assert verdict(machine, clone, 17) == 0
        assert verdict(machine, clone, flag | 17) == errno.EPERM
        assert verdict(machine, clone, 1 << 40 | flag | 17) == errno.EPERM

    @pytest.mark.parametrize(
        ("family", "error"), [(1, 0), (2, 0), (10, 0), (16, 97), (17, 97), (38, 97), (40, 97)]
    )
    def test_socket_families(self, machine: str, family: int, error: int) -> None:
        socket = {"x86_64": 41, "aarch64": 198}[machine]
        assert verdict(machine, socket, family) == error
        assert verdict(machine, socket, 1 << 32 | family) == error

    def test_pairs_are_local(self, machine: str) -> None:
        pair = {"x86_64": 53, "aarch64": 199}[machine]
        assert [verdict(machine, pair, family) for family in (1, 2)] == [0, errno.EAFNOSUPPORT]

    def test_set_id_bits(self, machine: str) -> None:
        fchmodat = {"x86_64": 268, "aarch64": 53}[machine]
        openat = {"x86_64": 257, "aarch64": 56}[machine]
        modes = (0o755, 0o1777, 0o4755, 0o2755)
        assert [verdict(machine, fchmodat, 0, 0, m) for m in modes] == [0, 0, 1, 1]
        assert [verdict(machine, 452, 0, 0, m) for m in modes] == [0, 0, 1, 1]
        assert [verdict(machine, openat, 0, 0, 0o100, m) for m in modes] == [0, 0, 1, 1]
        assert [verdict(machine, openat, 0, 0, 0, m) for m in modes] == [0, 0, 0, 0]

    def test_nobody_types_into_a_terminal(self, machine: str) -> None:
        ioctl = {"x86_64": 16, "aarch64": 29}[machine]
        requests = (0x5401, 0x5412, 0x541C, 1 << 32 | 0x5412)
        assert [verdict(machine, ioctl, 0, r) for r in requests] == [0, 1, 1, 1]

    def test_addresses_stay_random(self, machine: str) -> None:
        personality = {"x86_64": 135, "aarch64": 92}[machine]
        assert [verdict(machine, personality, p) for p in (0, 0xFFFFFFFF, 0x40000)] == [0, 0, 1]


def test_x32_ends_the_process() -> None:
    assert verdict("x86_64", 0x40000000 + 39) == -1


def test_an_unknown_processor_has_no_filter() -> None:
    with pytest.raises(LookupError):
        program(machine="riscv64")


async def test_the_kernel_takes_it(sandbox: Sandbox) -> None:
    assert platform.machine() in ARCH
    assert (await sandbox.run("grep ^Seccomp: /proc/self/status")).output == "Seccomp:\t2\n"
