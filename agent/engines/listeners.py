"""The TCP ports on which a process listens, from its descriptors and its network namespace."""

from __future__ import annotations

from agent.host.hostfs import HostFs

_LISTEN = b"0A"  # TCP_LISTEN, include/net/tcp_states.h
_ANY = {"00000000", "0" * 32}
_LOOPBACK = {
    "0100007F": "127.0.0.1",
    "00000000000000000000000001000000": "::1",
    "0000000000000000FFFF00000100007F": "127.0.0.1",
}
_MOST_DESCRIPTORS = 4096
_MOST_PORTS = 16


class Foreign(Exception):
    """The process has a network of its own: its ports are not ours."""


def listening(hostfs: HostFs, pid: int) -> dict[int, str]:
    """By port the loopback address that reaches it; ports bound to other addresses are left out.

    Raises OSError where the process is gone or closed to us, Foreign for another network namespace.
    """
    ours, theirs = hostfs.link("/proc/self/ns/net"), hostfs.link(f"/proc/{pid}/ns/net")
    if ours is not None and theirs is not None and ours != theirs:
        raise Foreign
    inodes = _sockets(hostfs, pid)
    found: dict[int, str] = {}
    for table, anywhere in (("tcp", "127.0.0.1"), ("tcp6", "::1")):
        try:
            data = hostfs.bytes(f"/proc/{pid}/net/{table}")
        except FileNotFoundError:
            continue
        for line in data.splitlines()[1:]:
            fields = line.split()
            if len(fields) < 10 or fields[3] != _LISTEN or fields[9] not in inodes:
                continue
            address, _, port = fields[1].decode("ascii").partition(":")
            if address in _ANY:
                found.setdefault(int(port, 16), anywhere)
            elif address in _LOOPBACK:
                found.setdefault(int(port, 16), _LOOPBACK[address])
    return dict(sorted(found.items())[:_MOST_PORTS])


def _sockets(hostfs: HostFs, pid: int) -> set[bytes]:
    """Inodes of the process's sockets. Raises OSError."""
    links = hostfs.opened(pid, _MOST_DESCRIPTORS)
    return {link[len("socket:[") : -1].encode() for link in links if link.startswith("socket:")}


__all__ = ["Foreign", "listening"]
