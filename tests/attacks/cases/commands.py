"""The socket on which commands of the shell are answered outside, and the clients beside it."""

from functools import partial

from tests.attacks.attack import python, shell

_shell = partial(shell, "commands")
_python = partial(python, "commands")

_CLIENT = """
def asked(*words):
    s = socket.socket(socket.AF_UNIX); s.settimeout(2); s.connect("/run/commands/socket")
    content = "\\0".join(words).encode()
    s.sendall(b"C" + len(content).to_bytes(4, "big") + content)
    return s
def said(s):
    found = b""
    while piece := s.recv(65536): found += piece
    return found.decode(errors="replace")
"""

ATTACKS = (
    _shell("another socket in its place", "rm -f /run/commands/socket; mv /run/commands/socket /tmp/s; [ -d /run/commands ] && [ ! -e /run/commands/socket ] && echo PWNED"),
    _shell("another socket beside it", "touch /run/commands/other && echo PWNED"),
    _shell("sockets of other calls", "[ $(find / -xdev -path /proc -prune -o -type s -print 2>/dev/null | wc -l) -gt 1 ] && echo PWNED"),
    _shell("another client", "echo x >> /commands/web && echo PWNED; rm -f /commands/web && echo PWNED"),
    _shell("a lie in the list of commands", "echo x >> /commands.txt && echo PWNED"),
    _python("a program by its path", _CLIENT + """
for path in ("../../../../../../bin/cat", "/bin/cat", "os", "..mcp", "web.os"):
    print(said(asked(path, "/", "{outside}/secret.txt")))"""),
    _python("a folder outside", _CLIENT + """
for words in (("docs", "{outside}", "add", "secret.txt"), ("docs", "/", "add", "../..{outside}/secret.txt")):
    print(said(asked(*words))); print(said(asked("docs", "/", "show", "secret.txt")))"""),
    _python("descriptors of the other side", _CLIENT + """
s = asked("web", "/", "--help")
while True:
    piece, fds, *_ = socket.recv_fds(s, 65536, 16)
    if fds: won()
    if not piece: break"""),
    _python("the process on the other side", _CLIENT + """
s = asked("web", "/", "--help")
pid, uid, _ = struct.unpack("iII", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
if pid or uid not in (65534, 1000): won()"""),
    _python("a thousand clients that never read", _CLIENT + """
held = []
for _ in range(1000):
    try: held.append(asked("web", "/", "--help"))
    except OSError: break
print(len(held) > 0)"""),
    _python("frames without an end", _CLIENT + """
s = socket.socket(socket.AF_UNIX); s.settimeout(2); s.connect("/run/commands/socket")
s.sendall(b"C" + (1 << 20).to_bytes(4, "big"))
sent = 0
try:
    while sent < 64 << 20: sent += s.send(bytes(65536))
    won()
except OSError: pass"""),
)  # fmt: skip
