"""Tries what a service that was taken over would try; prints each attempt's outcome as JSON.

Runs inside a unit that is like Talla's but for the command: attack.py STATE-FOLDER PID ADDRESS.
"""

import ctypes
import json
import mmap
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def read(path: str) -> None:
    if not Path(path).read_bytes():
        raise PermissionError("something empty stands in its place")


def names_in(path: str) -> None:
    if not os.listdir(path):
        raise PermissionError("something empty stands in its place")


def connect(host: str, port: int) -> None:
    socket.create_connection((host, port), timeout=2).close()


def resolve_by_udp(host: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as name_server:
        name_server.sendto(b"talla", (host, 53))


def writable_code() -> None:
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)


def set_user_id() -> None:
    """A set-user-id program of our own."""
    path = Path(sys.argv[1]) / "shell"
    path.write_bytes(Path("/bin/true").read_bytes())
    path.chmod(0o4755)


def gain_by_su() -> None:
    found = subprocess.run(
        ["/bin/su", "-c", "id -u", "nobody"], capture_output=True, text=True, check=False
    )
    if found.returncode:
        raise PermissionError(found.stderr.strip() or f"exit code {found.returncode}")


def no_new_privileges() -> None:
    status = Path("/proc/self/status").read_text()
    if "NoNewPrivs:\t1" in status:
        raise PermissionError("NoNewPrivs is set")


def attempts(state: str, others_pid: str, address: str) -> dict[str, Callable[[], object]]:
    return {
        "write its own state": lambda: Path(state, "mine").write_text("x"),
        "read the host's processors": lambda: Path("/proc/cpuinfo").read_bytes(),
        "reach loopback": lambda: connect("127.0.0.1", 8086),
        "write /etc/talla": lambda: Path("/etc/talla/agent.toml").write_text("x"),
        "write /etc/cron.d": lambda: Path("/etc/cron.d/x").write_text("x"),
        "write its program": lambda: Path("/opt/talla/current/x").write_text("x"),
        "write /var/lib": lambda: Path("/var/lib/x").write_text("x"),
        "write /usr/local": lambda: Path("/usr/local/bin/x").write_text("x"),
        "read /home": lambda: read("/home/ana/secret"),
        "list /home": lambda: names_in("/home"),
        "list /root": lambda: names_in("/root"),
        "read the token": lambda: read("/etc/talla/influx-token"),
        "read /etc/shadow": lambda: read("/etc/shadow"),
        "become root": lambda: os.setuid(0),
        "make a set-user-id program": set_user_id,
        "run one (su)": gain_by_su,
        "gain rights by exec": no_new_privileges,
        "make a user namespace": lambda: checked(libc.unshare(0x10000000)),
        "mount": lambda: checked(libc.mount(b"none", state.encode(), b"tmpfs", 0, None)),
        "make a device file": lambda: os.mknod(f"{state}/sda", 0o060600, os.makedev(8, 0)),
        "open another device": lambda: os.open("/dev/talla-other", os.O_RDWR),
        "load a module": lambda: checked(libc.syscall(175, 0, 0, b"")),
        "trace another process": lambda: checked(libc.ptrace(16, int(others_pid), 0, 0)),
        "read another's memory": lambda: Path(f"/proc/{others_pid}/mem").open("rb").close(),
        "memory to write and run": writable_code,
        "a raw packet socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close(),
        "set the clock": lambda: checked(libc.settimeofday(ctypes.byref((ctypes.c_long * 2)()), 0)),
        "write a kernel setting": lambda: Path("/proc/sys/kernel/hostname").write_text("x"),
        "make a cgroup": lambda: os.mkdir("/sys/fs/cgroup/systemd/x"),
        "reach another address": lambda: connect(address, 8086),
        "send a datagram there": lambda: resolve_by_udp(address),
    }


def main() -> None:
    told = {}
    for name, attempt in attempts(*sys.argv[1:4]).items():
        try:
            attempt()
        except Exception as error:  # noqa: BLE001 - whatever stopped it is the answer
            told[name] = f"{type(error).__name__}: {error}"
        else:
            told[name] = "SUCCEEDED"
    print(json.dumps(told))


if __name__ == "__main__":
    main()
