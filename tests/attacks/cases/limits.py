"""Using up the machine: processes, memory, disk, output, time. Sized so that nothing breaks without walls."""

from functools import partial

from tests.attacks.attack import CHORE, python, shell

_shell = partial(shell, "limits")
_python = partial(python, "limits")

_FILL = "dd if=/dev/zero of=%s bs=1M count=%d 2>/dev/null && echo PWNED; rm -f %s"

ATTACKS = (
    _shell("many processes", "for n in $(seq 150); do sleep 2 & done 2>/dev/null; [ $(jobs -rp | wc -l) -ge 150 ] && echo PWNED; wait"),
    _shell("many processes in sessions of their own", "for n in $(seq 150); do setsid sleep 2 & done 2>/dev/null; [ $(ps ax | grep -c '[s]leep 2') -ge 150 ] && echo PWNED; wait"),
    _python("many threads", """
import threading
done = threading.Event()
try:
    for n in range(150): threading.Thread(target=done.wait, daemon=True).start()
    won()
except RuntimeError: pass
done.set()"""),
    _python("memory in one process", """
kept = bytearray(400 << 20); kept[::4096] = b"x" * len(kept[::4096]); won()"""),
    _python("memory in many processes", """
ready, tell = os.pipe()
for n in range(5):
    if not os.fork():
        kept = bytearray(80 << 20); os.write(tell, b"x"); time.sleep(4); os._exit(0)
for n in range(5): os.read(ready, 1)
time.sleep(2); won()"""),
    _python("shared memory without a name", """
kept = mmap.mmap(-1, 400 << 20)
for at in range(0, len(kept), 4096): kept[at] = 1
time.sleep(2); won()"""),
    _python("memory in a file without a name", """
fd = os.memfd_create("x"); piece = bytes(1 << 20)
for n in range(400): os.write(fd, piece)
time.sleep(2); won()"""),
    _python("System V shared memory", """
libc.shmat.restype = ctypes.c_void_p
number = libc.shmget(0, 400 << 20, 0o1600)
if number >= 0:
    libc.shmctl(number, 0, None); won()"""),
    _shell("/dev/shm", _FILL % ("/dev/shm/voltaire-fill", 300, "/dev/shm/voltaire-fill")),
    _shell("/tmp", _FILL % ("/tmp/voltaire-fill", 400, "/tmp/voltaire-fill")),
    _shell("/", _FILL % ("/voltaire-fill", 10, "/voltaire-fill")),
    _shell("/dev", _FILL % ("/dev/voltaire-fill", 10, "/dev/voltaire-fill")),
    _shell("one large file", _FILL % ("fill", 100, "fill")),
    _shell("many files of some size", "for n in $(seq 20); do dd if=/dev/zero of=f$n bs=1M count=6 2>/dev/null || break; done; sleep 2; [ -e f20 ] && [ $(du -sm . | cut -f1) -gt 100 ] && echo PWNED; rm -f f*"),
    _python("files that have no name any more", """
kept = []
for n in range(20):
    file = open("gone", "wb"); os.unlink("gone"); file.write(bytes(6 << 20)); file.flush(); kept.append(file)
time.sleep(2); won()"""),
    _python("files in unreadable directories", """
os.mkdir("closed")
for n in range(20):
    with open(f"closed/{n}", "wb") as file: file.write(bytes(6 << 20))
    os.chmod("closed", 0o300)
time.sleep(2); won()"""),
    shell(CHORE, "clean up", "chmod -R u+rwx . ; rm -rf closed gone f* fill"),
    _shell("many empty files", "mkdir -p many; cd many; seq 4000 | xargs touch; sleep 2; [ $(ls | wc -l) -ge 4000 ] && echo PWNED; rm -rf ../many"),
    shell(CHORE, "clean up", "rm -rf many"),
    _python("directories in directories", """
for n in range(1500): os.mkdir("d"); os.chdir("d")
time.sleep(2); won()"""),
    shell(CHORE, "clean up", "rm -rf d"),
    _shell("a file of a terabyte", "truncate -s 1T huge && echo PWNED; rm -f huge"),
    _shell("a flood of output", "yes | head -c 30000000"),
    _shell("a flood on the error stream", "yes 1>&2 & sleep 1; kill $!"),
    _shell("a flood without a line end", "head -c 30000000 /dev/zero | tr '\\0' x"),
    _shell("time", "sleep 6; echo PWNED"),
    _shell("time, past signals", "trap '' TERM INT HUP; sleep 6; echo PWNED"),
    _shell("a core file", "ulimit -c unlimited; sh -c 'kill -SEGV $$'; ls core* && echo PWNED"),
    _shell("locked memory", "ulimit -Hl | grep -qE 'unlimited|[0-9]{7}' && echo PWNED"),
)  # fmt: skip
