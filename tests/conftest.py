"""Fixtures that every area shares."""

import fcntl
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

from tests.require import need_program

pytest_plugins = ["tests.servers.fixtures", "tests.traces"]

# No test is timed, and CI draws the same examples each time.
settings.register_profile("talla", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("talla")

FAKENVML = Path(__file__).parent / "fakenvml"


@pytest.fixture(scope="session")
def fakenvml() -> Path:
    """The directory that holds the fake ``libnvidia-ml.so.1``, built once for all workers."""
    need_program("gcc", "gcc", "gcc")
    need_program("make", "make", "gcc")
    build = FAKENVML / "build"
    build.mkdir(exist_ok=True)
    with (build / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(["make", "-C", FAKENVML], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.fail(f"the fake NVML library does not build:\n{made.stderr}", pytrace=False)
    return build
