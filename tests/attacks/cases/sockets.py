"""The network, and every other way to talk to a process outside."""

from functools import partial

from tests.attacks.attack import python, shell

_shell = partial(shell, "sockets")
_python = partial(python, "sockets")

_FAMILY = """
try: socket.socket(%d, %s, 0).close(); won()
except OSError: pass"""

ATTACKS = (
    _shell("a port on loopback", "timeout 2 cat < /dev/tcp/127.0.0.1/{port}"),
    _shell("a port on localhost", "timeout 2 cat < /dev/tcp/localhost/{port}"),
    _shell("a port by curl", "curl -s --http0.9 -m 2 http://127.0.0.1:{port}/"),
    _shell("a datagram on loopback", "exec 3<>/dev/udp/127.0.0.1/{udp}; echo x >&3; timeout 1 head -c 18 <&3"),
    _shell("a route out", "[ $(wc -l < /proc/net/route) -gt 1 ] && echo PWNED"),
    _shell("interfaces besides loopback", "[ $(tail -n +3 /proc/net/dev | grep -vc ' lo:') -gt 0 ] && echo PWNED"),
    _shell("the list of the host's sockets", "grep -q backend.sock /proc/net/unix && echo PWNED"),
    _shell("the list of listening ports", "grep -qi ':0*%x ' /proc/net/tcp; awk 'NR>1' /proc/net/tcp | grep -q . && echo PWNED"),
    _python("the control socket", """
s = socket.socket(socket.AF_UNIX); s.connect("{socket}"); print(s.recv(99).decode())"""),
    _python("the control socket by a short name", """
import glob
for path in glob.glob("/proc/*/cwd/**/backend.sock", recursive=False) + ["{socket}"]:
    s = socket.socket(socket.AF_UNIX); s.connect(path); print(s.recv(99).decode())"""),
    _python("an abstract socket", """
s = socket.socket(socket.AF_UNIX); s.connect("\\0{abstract}"); print(s.recv(99).decode())"""),
    _python("a netlink socket", _FAMILY % (16, "socket.SOCK_RAW")),
    _python("a packet socket", _FAMILY % (17, "socket.SOCK_DGRAM")),
    _python("a raw socket", _FAMILY % (2, "socket.SOCK_RAW")),
    _python("a VSOCK socket", _FAMILY % (40, "socket.SOCK_STREAM")),
    _python("the kernel's crypto sockets", _FAMILY % (38, "socket.SOCK_SEQPACKET")),
    _python("sockets by io_uring", """
if call(425, 4, ctypes.create_string_buffer(120)) >= 0: won()"""),
    _python("a socket through 32-bit calls", """
code = bytes.fromhex("b814000000cd80c3")  # getpid by int 0x80
if os.uname().machine == "x86_64":
    page = mmap.mmap(-1, 4096, prot=7); page.write(code)
    at = ctypes.addressof(ctypes.c_char.from_buffer(page))
    if ctypes.CFUNCTYPE(ctypes.c_int)(at)() > 0: won()"""),
)  # fmt: skip
