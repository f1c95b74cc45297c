"""Talla's life on a server: from nothing, by the documented steps, to nothing.

The tests of this file are one story, in order, on one machine.
"""

import json
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.docs.commands import ROOT, as_root, commands
from tests.systemd.machine import Machine

PAGE = (ROOT / "docs/install.md").read_text("utf-8")
STORE = "/var/lib/talla/agent.db"
AGENT = "talla-agent.service"
DROP_INS = "/etc/systemd/system/talla-agent.service.d /etc/systemd/system/talla-advisor.service.d"
FAKE = """\
gpus=2
gpu*.name=NVIDIA H100 80GB HBM3
gpu*.util=90
"""

pytestmark = [pytest.mark.timeout(300), pytest.mark.systemd]


def windows(machine: Machine, measurement: str) -> int:
    """How many rows the store holds."""
    return number(machine, f"SELECT count(*) FROM m_{measurement}")


def number(machine: Machine, query: str) -> int:
    """What the store answers; 0 before there is one."""
    opened = f"sqlite3.connect('file:{STORE}?mode=ro', uri=True)"
    code = f"import sqlite3; print({opened}.execute('{query}').fetchone()[0])"
    done = machine.run(f'/usr/bin/python3 -c "{code}"', check=False)
    return int(done.stdout or 0)


def main_pid(machine: Machine) -> int:
    return int(machine.show(AGENT, "MainPID"))


def test_every_step_of_the_page_installs_it_from_nothing(machine: Machine) -> None:
    for command in commands(PAGE.split("\n## Uninstall")[0]):
        machine.run(as_root(command), timeout=200)
        if command == "sudo make install":
            assert machine.show(AGENT, "ActiveState") == "active", command
    assert machine.show(AGENT, "NRestarts") == "0"
    machine.run(
        f"rm -rf {DROP_INS}; systemctl daemon-reload; systemctl restart talla-agent talla-advisor"
    )


def test_it_is_ready_and_host_windows_arrive(machine: Machine) -> None:
    assert machine.show(AGENT, "SubState") == "running"
    assert "newest samples: " in machine.show(AGENT, "StatusText")
    assert machine.show("talla-advisor", "SubState") == "running"
    machine.until("a window of the host", lambda: windows(machine, "host"))
    owner, others = machine.out(f"stat -c '%U %a' {STORE}").split()
    assert owner == "talla"
    assert others.endswith("0")


def test_it_stops_within_three_seconds(machine: Machine) -> None:
    for service in ("talla-agent", "talla-advisor"):
        began = float(machine.out("cut -d' ' -f1 /proc/uptime"))
        machine.run(f"systemctl stop {service}")
        took = float(machine.out("cut -d' ' -f1 /proc/uptime")) - began
        assert took < 3
        assert machine.show(service, "Result") == "success"
    machine.run("systemctl start talla-agent talla-advisor")


def test_a_wrong_setting_ends_it_with_file_and_key_once(machine: Machine) -> None:
    machine.run("cp -p /etc/talla/agent.toml /root/agent.toml")
    machine.run("echo 'colour = 1' >> /etc/talla/agent.toml")
    machine.run("systemctl restart talla-agent", check=False)
    # A unit that waits for its next start is "activating", not "failed".
    status, state = machine.show(AGENT, "ExecMainStatus"), machine.show(AGENT, "ActiveState")
    restarts = machine.show(AGENT, "NRestarts")
    machine.run("cp -p /root/agent.toml /etc/talla/agent.toml; systemctl start talla-agent")

    assert (status, state, restarts) == ("78", "failed", "0")
    told = [line for line in machine.journal(f"-u {AGENT}").splitlines() if "colour" in line]
    assert len(told) == 1
    assert "/etc/talla/agent.toml:" in told[0]


def test_it_comes_back_after_a_boot_where_a_report_was_missed(machine: Machine) -> None:
    simulated = "/var/lib/talla/simulated.db"
    machine.run(
        "systemctl stop talla-advisor; sed -i "
        f"""'s|^stores = .*|stores = ["{simulated}"]|' /etc/talla/advisor.toml"""
    )
    machine.run(
        "runuser -u talla -- talla-agent simulate --scenario chatbot --days 8"
        f" --until $(date -d 'last monday 07:00' +%s) --store {simulated}"
    )
    code = (
        "from advisor.state import State; from advisor.service.reports import STAMP;"
        "State('/var/lib/talla-advisor/advisor.db').set_stamp(STAMP, 1.0)"
    )
    machine.run(f'runuser -u talla-advisor -- /opt/talla/current/bin/python -c "{code}"')
    assert machine.out("ls /var/lib/talla-advisor/reports 2>/dev/null || true") == ""
    machine.reboot()
    assert machine.show(AGENT, "ActiveState") == "active"  # it was enabled


def test_the_main_job_begins_in_another_folder(machine: Machine) -> None:
    """With the installed wheel alone; it goes on while the next tests run."""
    machine.run("install -d -o talla-advisor /srv/elsewhere; cp demo/main-job /srv/elsewhere")
    machine.run(
        "systemd-run -q --unit=main-job --uid=talla-advisor --working-directory=/srv/elsewhere"
        " -p RemainAfterExit=yes --setenv=PATH=/usr/local/bin:/usr/bin:/bin"
        " bash main-job"
    )


def test_a_driver_that_comes_later_is_found(machine: Machine, fakenvml: Path) -> None:
    machine.write(
        "/etc/systemd/system/talla-agent.service.d/fake.conf",
        "[Service]\nEnvironment=FAKENVML_SCENARIO=/etc/fake-gpus\n",
    )
    machine.write("/etc/fake-gpus", FAKE)
    machine.run("systemctl daemon-reload; systemctl restart talla-agent")
    pid = main_pid(machine)
    assert windows(machine, "gpu") == 0
    machine.run(
        "base64 -d | install -m 644 /dev/stdin /usr/lib/libnvidia-ml.so.1",
        given=_base64(fakenvml / "libnvidia-ml.so.1"),
    )
    machine.until("windows of both GPUs", lambda: windows(machine, "gpu") >= 2, 60)
    assert main_pid(machine) == pid


def test_killed_it_comes_back(machine: Machine) -> None:
    pid = main_pid(machine)
    machine.run(f"kill -9 {pid}")
    machine.until("another process", lambda: main_pid(machine) not in (0, pid))
    machine.until("READY", lambda: machine.show(AGENT, "SubState") == "running")
    assert machine.show(AGENT, "NRestarts") == "1"


def test_hung_it_is_restarted_by_the_watchdog(machine: Machine) -> None:
    assert machine.show(AGENT, "WatchdogUSec") == "30s"
    machine.write(
        "/etc/systemd/system/talla-agent.service.d/soon.conf",
        "[Service]\nWatchdogSec=3\nRestartSec=1\n",
    )
    machine.run("systemctl daemon-reload; systemctl restart talla-agent")
    pid = main_pid(machine)
    time.sleep(4)  # fresh data feed the watchdog: it does not bite
    assert main_pid(machine) == pid
    machine.run(f"kill -STOP {pid}")
    machine.until("another process", lambda: main_pid(machine) not in (0, pid))
    machine.until("READY", lambda: machine.show(AGENT, "SubState") == "running")
    assert "Watchdog timeout" in machine.journal(f"-u {AGENT}")


def test_what_a_service_that_was_taken_over_can_do(machine: Machine) -> None:
    machine.write("/usr/local/bin/attack.py", Path(__file__).with_name("attack.py").read_text())
    machine.write("/home/ana/secret", "x", "644")
    machine.write("/etc/talla/influx-token", "x", "600")
    machine.run("mknod -m 666 /dev/nvidiactl c 195 255; mknod -m 666 /dev/talla-other c 10 200")
    machine.run("ip link set lo up; ip address add 192.0.2.1/32 dev lo")
    server = "from http.server import *; HTTPServer(('', 8086), BaseHTTPRequestHandler)"
    server += ".serve_forever()"
    machine.run(f'systemd-run --unit=influx /usr/bin/python3 -c "{server}"')
    machine.until(
        "the server",
        lambda: (
            machine.run("timeout 1 bash -c '</dev/tcp/192.0.2.1/8086'", check=False).returncode == 0
        ),
    )
    for service, state in (
        ("talla-agent", "/var/lib/talla"),
        ("talla-advisor", "/var/lib/talla-advisor"),
    ):
        told = attack(machine, service, state)
        allowed = {name for name, outcome in told.items() if outcome == "SUCCEEDED"}
        assert allowed == {
            "write its own state",
            "read the host's processors",
            "reach loopback",
        } - ({"read the host's processors"} if service == "talla-advisor" else set()), told


def attack(machine: Machine, service: str, state: str, more: str = "") -> dict[str, str]:
    """Runs attack.py in a unit like the installed one; `more` is a drop-in."""
    unit = machine.out(f"cat /usr/local/lib/systemd/system/{service}.service")
    others = machine.show("influx", "MainPID")
    command = f"/usr/bin/python3 -I /usr/local/bin/attack.py {state} {others} 192.0.2.1"
    unit = re.sub(r"^ExecStart=.*$", f"ExecStart={command}", unit, flags=re.MULTILINE)
    unit = re.sub(r"^Type=.*$", "Type=oneshot", unit, flags=re.MULTILINE)
    unit = re.sub(
        r"^(WatchdogSec|Restart|RestartSec|NotifyAccess)=.*\n", "", unit, flags=re.MULTILINE
    )
    machine.write(f"/run/systemd/system/attack-{service}.service", unit)
    machine.write(f"/run/systemd/system/attack-{service}.service.d/more.conf", more)
    machine.run(f"systemctl daemon-reload; systemctl start attack-{service}")
    lines = machine.journal(f"-u attack-{service}").splitlines()
    found: dict[str, str] = json.loads([line for line in lines if line.startswith("{")][-1])
    return found


def test_the_agent_may_open_nvidias_device_files_before_there_is_a_driver(machine: Machine) -> None:
    """What the list refuses gives EPERM; what it lets pass, and no driver answers, ENXIO."""
    code = (
        "import os, errno\\n"
        "for path in ('/dev/nvidiactl', '/dev/talla-other'):\\n"
        "    try: os.open(path, os.O_RDWR)\\n"
        "    except OSError as error: print(path, errno.errorcode[error.errno])\\n"
    )
    done = machine.out(
        "systemd-run -q --wait --pipe -p DevicePolicy=closed -p 'DeviceAllow=char-195 rw'"
        f""" /usr/bin/python3 -c "exec('''{code}''')" """
    )
    assert done.splitlines() == ["/dev/nvidiactl ENXIO", "/dev/talla-other EPERM"]


def test_the_drop_in_for_processes_gives_two_capabilities_and_no_more(machine: Machine) -> None:
    machine.run(
        "install -D -m 644 /opt/talla/current/share/talla/agent-processes.conf"
        " /etc/systemd/system/talla-agent.service.d/processes.conf"
    )
    machine.run("systemctl daemon-reload; systemctl restart talla-agent")
    status = machine.out(f"grep CapEff /proc/{main_pid(machine)}/status").split()[1]
    assert int(status, 16) == 1 << 19 | 1 << 2  # CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH
    option = (ROOT / "systemd/options/agent-processes.conf").read_text("utf-8")
    told = attack(machine, "talla-agent", "/var/lib/talla", option)
    assert {name for name, outcome in told.items() if outcome == "SUCCEEDED"} == {
        *("write its own state", "read the host's processors", "reach loopback"),
        "read another's memory",
    }, told


def test_the_missed_report_was_made_up(machine: Machine) -> None:
    machine.until(
        "the report",
        lambda: machine.out("ls /var/lib/talla-advisor/reports/20*/*.html 2>/dev/null || true"),
        120,
    )
    machine.until("its line", lambda: "report made" in machine.journal("-u talla-advisor"))


def test_the_main_job_ends_well(machine: Machine) -> None:
    machine.until(
        "its end", lambda: machine.show("main-job", "SubState") in ("exited", "failed"), 90
    )
    assert machine.show("main-job", "Result") == "success", machine.journal("-u main-job")
    machine.run("test -s /srv/elsewhere/build/demo/report/report.json; rm -rf /srv/elsewhere")


def test_a_quiet_time_is_not_told(machine: Machine) -> None:
    """A day may hold 50 lines: what is logged at rest must be nothing."""
    time.sleep(1)
    since = machine.out("date '+%F %T'")
    time.sleep(3)
    lines = machine.journal(f"-u talla-agent -u talla-advisor --since '{since}'").splitlines()
    assert [line for line in lines if line and not line.startswith("-- No entries")] == []
    # It is at work nevertheless, after all that was done to it.
    newest = number(machine, "SELECT max(start) FROM window")
    assert int(machine.out("date +%s")) - newest < 60


def test_installing_over_an_older_version_keeps_settings_and_copies_the_store(
    machine: Machine, source: Path
) -> None:
    machine.run("systemctl stop talla-agent; rm -f /var/lib/talla/agent.db*")
    machine.write("/root/old.db64", _base64(ROOT / "tests/golden/store/v1.db"))
    machine.run(f"base64 -d /root/old.db64 | install -o talla -g talla -m 640 /dev/stdin {STORE}")
    machine.run("printf '[agent]\nlog_level = \"info\"\n' > /etc/talla/agent.toml")
    settings = machine.out("cat /etc/talla/agent.toml")
    newer_wheel(source)

    machine.run("make install PARTS=agent", timeout=200)

    assert machine.out("talla-agent --version").startswith("talla-agent 99.")
    assert machine.out("cat /etc/talla/agent.toml") == settings
    assert machine.out("ls /opt/talla | wc -l") == "2"  # the release and the link to it
    assert machine.run("systemctl cat talla-advisor", check=False).returncode != 0
    assert machine.show(AGENT, "ActiveState") == "active"
    copy = machine.out("sha256sum < /var/backups/talla/store/agent.db")
    assert copy == machine.out("base64 -d /root/old.db64 | sha256sum")
    newest = "SELECT max(window_id) FROM window"
    with closing(sqlite3.connect(ROOT / "tests/golden/store/v1.db")) as old:
        last = old.execute(newest).fetchone()[0]
    machine.until("the old store's next window", lambda: number(machine, newest) > last > 0)


def newer_wheel(source: Path) -> None:
    """What `make wheels` leaves for a later version of Talla."""
    project = (source / "pyproject.toml").read_text()
    (source / "pyproject.toml").write_text(project.replace('version = "', 'version = "99.', 1))
    wheels = source / "build/wheels"
    [old] = wheels.glob("talla-*.whl")
    old.unlink()
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(wheels)]
    subprocess.run([*command, str(source)], capture_output=True, check=True)
    (wheels / ".whole").touch()


def test_uninstalled_it_leaves_what_was_asked_for_and_then_nothing(machine: Machine) -> None:
    steps = commands(PAGE.split("\n## Uninstall")[1])
    kept, whole = (as_root(step) for step in steps[-2:])
    machine.run(as_root(steps[0]))
    assert machine.show(AGENT, "ActiveState") == "active"  # it was a dry run
    machine.run(kept)
    machine.run(f"test -e {STORE} && test -e /etc/talla/agent.toml && id talla")
    machine.run("! test -e /opt/talla && ! test -e /usr/local/bin/talla-agent")
    machine.run(whole)
    left = machine.out(
        "find /etc /opt /usr /var /run /srv /home -xdev -newer /etc/machine-id"
        " \\( -name '*talla*' -o -nouser \\) -not -path '/var/log/*'"
        " -not -name 'attack-*' 2>/dev/null || true"
    )
    assert left == ""
    assert machine.run("getent passwd talla talla-advisor", check=False).stdout == ""
    assert machine.run("getent group talla talla-advisor", check=False).stdout == ""


def _base64(path: Path) -> str:
    return subprocess.run(["base64", str(path)], capture_output=True, text=True, check=True).stdout
