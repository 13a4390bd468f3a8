"""A listening socket inside a sandbox's empty network, made from outside.

So the program's proxy is the one thing that a sandbox with network can reach:
no socket file is mounted and nothing of ours runs inside. Standard library only.
"""

import ctypes
import fcntl
import os
import socket

PORT = 3128
_OWNER = 0xB701  # NS_GET_USERNS of linux/nsfs.h
_NEWUSER, _NEWNET = 0x10000000, 0x40000000
_FREEBIND = 15  # the loopback interface may not be up yet
_BACKLOG = 64


def main(pid: int, answer: int) -> None:
    with socket.socket(fileno=answer) as reply, listening(pid) as listener:
        socket.send_fds(reply, [b"{}"], [listener.fileno()])


def listening(pid: int) -> socket.socket:
    """Moves this process into the network of `pid`; only for one that ends soon."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    if os.geteuid():
        _enter(fcntl.ioctl(network, _OWNER), _NEWUSER)
    _enter(network, _NEWNET)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_IP, _FREEBIND, 1)
    listener.bind(("127.0.0.1", PORT))
    listener.listen(_BACKLOG)
    return listener


def _enter(namespace: int, kind: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, kind):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    os.close(namespace)
