"""A listening socket inside a sandbox's empty network, made from outside.

So the program's proxy is the one thing that a sandbox with network can reach:
no socket file is mounted and no program of ours runs inside. Standard library only:
unprivileged_server.py calls it.
"""

import ctypes
import fcntl
import os
import socket

PROXY_PORT = 3128
NS_GET_USERNS = 0xB701  # linux/nsfs.h
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
IP_FREEBIND = 15  # the loopback interface may not be up yet
BACKLOG = 64


def listen_in_network_of(pid: int) -> socket.socket:
    """Moves this process into the network namespace of `pid`; only for one that ends soon."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    if os.geteuid():
        enter(fcntl.ioctl(network, NS_GET_USERNS), CLONE_NEWUSER)
    enter(network, CLONE_NEWNET)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_IP, IP_FREEBIND, 1)
    listener.bind(("127.0.0.1", PROXY_PORT))
    listener.listen(BACKLOG)
    return listener


def enter(namespace: int, kind: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, kind):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    os.close(namespace)
