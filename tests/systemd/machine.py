"""A machine with a real systemd, from a test's view."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("machine.sh")


def obstacle() -> str | None:
    """Why no such machine can be had here; None if it can."""
    if os.geteuid() != 0:
        return "run the tests as root"
    if not Path("/lib/systemd/systemd").exists():
        return "apt-get install systemd"
    if subprocess.run(["unshare", "-m", "-p", "-n", "-f", "true"], check=False).returncode:
        return "allow this container to make namespaces (it has no CAP_SYS_ADMIN)"
    if not Path("/sys/fs/cgroup/systemd").exists():
        return "boot with systemd.unified_cgroup_hierarchy=0 (the test's machine is hybrid)"
    return None


class Machine:
    """`folder` holds its state; `source` is seen inside as /root/talla.

    It begins as a copy of this machine's files, without a network; or of those of `tree`, with this
    machine's network.
    """

    def __init__(self, folder: Path, source: Path, tree: Path | None = None) -> None:
        self._environment = {**os.environ, "MACHINE": str(folder)}
        if tree is not None:
            self._environment |= {"TREE": str(tree), "NETWORK": "host"}
        self._script("up", str(source), timeout=60)

    def run(
        self, command: str, *, check: bool = True, timeout: float = 120, given: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """A line of shell, as root in /root/talla, in a plain environment."""
        script = ["bash", str(SCRIPT), "exec", "env", "-i"]
        script += ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
        script += ["HOME=/root", "LANG=C.UTF-8", "SYSTEMD_PAGER=", "bash", "-c"]
        done = subprocess.run(
            [*script, f"cd /root/talla && {command}"],
            env=self._environment,
            input=given,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=timeout,
            check=False,
        )
        if check and done.returncode:
            log = "" if "journalctl" in command else self.journal()
            raise AssertionError(f"{command}\n{done.stdout}\n{done.stderr}\n{log}")
        return done

    def out(self, command: str) -> str:
        """What a command prints, without the line's end."""
        return self.run(command).stdout.strip()

    def write(self, path: str, text: str, mode: str = "644") -> None:
        """A file inside, with its folders."""
        self.run(f"install -D -m {mode} /dev/stdin {path}", given=text)

    def show(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.out(f"systemctl show -P {name} {unit}")

    def journal(self, what: str = "") -> str:
        """What was logged."""
        return self.run(f"journalctl --no-pager -o cat {what}", check=False).stdout

    def until(self, what: str, holds: Callable[[], object], seconds: float = 45) -> None:
        """Waits for something to hold."""
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                raise AssertionError(
                    f"not within {seconds:.0f} s: {what}\n{self.journal()[-6000:]}"
                )
            time.sleep(0.2)

    def reboot(self) -> None:
        """Ends all processes and boots again; files stay."""
        self._script("reboot", timeout=60)

    def down(self) -> None:
        """Ends it; nothing of it is left."""
        self._script("down", timeout=60)

    def _script(self, *words: str, timeout: float) -> None:
        done = subprocess.run(
            ["bash", str(SCRIPT), *words],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"{words}: {done.stdout}\n{done.stderr}")
