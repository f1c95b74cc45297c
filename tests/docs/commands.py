"""The commands of a page: lines that begin with `$ ` in its console blocks."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SUDO = re.compile(r"\bsudo (?:-u (\S+) )?")


def commands(text: str) -> list[str]:
    """The commands of Markdown text, in order, without the remarks behind them."""
    lines = "\n".join(_BLOCK.findall(text)).splitlines()
    return [re.sub(r"\s+# .*$", "", line[2:]) for line in lines if line.startswith("$ ")]


def as_root(command: str) -> str:
    """The command for somebody who is root, where there is no sudo."""
    return _SUDO.sub(lambda m: f"runuser -u {m[1]} -- " if m[1] else "", command)
