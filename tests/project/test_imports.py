"""What a fresh interpreter has loaded after it imported the agent: its memory is a promise."""

import json
import subprocess
import sys

HEAVY = {"matplotlib", "numpy", "pandas", "scipy", "sklearn"}

# Not needed to sample: each is loaded by the part that needs it, in the process that needs it.
LATE = {"influxdb_client", "pydantic", "pynvml", "reactivex", "urllib3"}

REPORT = """
import importlib, json, pkgutil, sys

imported = []
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    imported.append(name)
    for found in pkgutil.walk_packages(getattr(module, "__path__", ()), name + "."):
        importlib.import_module(found.name)
        imported.append(found.name)
print(json.dumps([imported, sorted({name.split(".")[0] for name in sys.modules})]))
"""


def loaded_after_import(*names: str) -> tuple[set[str], set[str]]:
    """The modules imported for ``names``, packages whole, and the top-level names then loaded."""
    ran = subprocess.run(
        [sys.executable, "-c", REPORT, *names], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    imported, loaded = json.loads(ran.stdout)
    return set(imported), set(loaded)


def test_no_module_of_the_agent_loads_a_heavy_library() -> None:
    imported, loaded = loaded_after_import("telemetry", "agent")

    assert {"agent.daemon", "agent.nvml.child", "telemetry.store"} <= imported
    assert loaded & HEAVY == set()


def test_the_daemon_starts_light() -> None:
    _, loaded = loaded_after_import("agent.daemon")

    assert loaded & (HEAVY | LATE) == set()


def test_the_report_sees_a_heavy_library() -> None:
    _, loaded = loaded_after_import("sklearn.dummy")

    assert {"numpy", "scipy", "sklearn"} <= loaded
