"""What a test needs from the machine: a server, a compiler, a browser.

On a laptop an absent part skips the test, with the reason. Where the part is promised it fails
instead: ``TALLA_REQUIRE=all`` (set by ``.ci/run``) promises everything,
``TALLA_REQUIRE=influxdb,gcc`` promises those by name.
"""

import os
import shutil
from pathlib import Path

import pytest

VARIABLE = "TALLA_REQUIRE"


def required(what: str) -> bool:
    """Whether ``TALLA_REQUIRE`` promises the part called ``what``."""
    promised = {name.strip() for name in os.environ.get(VARIABLE, "").split(",")}
    return "all" in promised or what in promised


def need(present: object, what: str, how: str) -> None:
    """Go on if ``present`` is true; else skip the test, or fail it where ``what`` is promised.

    ``what`` is the short name of the part, ``how`` what a person does to have it.
    """
    if present:
        return
    reason = f"{what} is not here: {how}"
    if required(what):
        pytest.fail(f"{reason} ({VARIABLE}={os.environ[VARIABLE]})", pytrace=False)
    pytest.skip(reason)


def need_program(program: str, package: str, what: str | None = None) -> Path:
    """The path of ``program``, which the Debian ``package`` brings; see `need` where it is absent.

    ``/usr/sbin`` is searched too: it is often not on the path of a user who is not root.
    """
    path = shutil.which(program, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
    need(path, what or package, f"apt-get install --no-install-recommends {package}")
    assert path is not None
    return Path(path)


def held_back() -> list[str]:
    """What makes a command one that permissions hold back, also where root runs the tests."""
    if os.geteuid() != 0:
        return []
    setpriv = need_program("setpriv", "util-linux")
    return [str(setpriv), "--bounding-set=-dac_override,-dac_read_search"]
