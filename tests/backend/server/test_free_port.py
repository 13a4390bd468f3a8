"""The port that a server is to get."""

import errno
import socket

import pytest

from backend.server.launch import free_port


def test_only_a_server_that_is_told_the_port_gets_it() -> None:
    address = ("127.0.0.1", free_port())
    with socket.socket() as other, pytest.raises(OSError) as told:
        other.bind(address)  # as the kernel looks whether it may give it to somebody
    assert told.value.errno == errno.EADDRINUSE
    socket.create_server(address).close()
