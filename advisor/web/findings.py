"""Findings for the page, made by a child process: the service itself stays small.

    python -m advisor.web.findings LANGUAGE CONFIG STORE...

prints them as JSON, with the sentences in a language; an empty CONFIG is the usual one. They are
those that the report tells: judged by the same settings, with the same prices.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_FRESH_SECONDS = 1800.0
_LIMIT_SECONDS = 600.0
_NICER = 10


class Findings:
    """The findings of stores, at most half an hour old, made when somebody asks."""

    def __init__(self, paths: Sequence[Path], config: Path | None = None) -> None:
        self._paths = tuple(paths)
        self._config = config
        self._kept: dict[str, tuple[float, dict[str, Any]]] = {}
        self._lock = asyncio.Lock()

    async def __call__(self, language: str) -> dict[str, Any]:
        """`made` (Unix seconds) and `findings`, or `trouble` in one line."""
        async with self._lock:
            kept = self._kept.get(language)
            if kept is not None and time.monotonic() - kept[0] < _FRESH_SECONDS:
                return kept[1]
            document = await self._make(language)
            if "trouble" not in document:
                self._kept[language] = time.monotonic(), document
            return document

    async def _make(self, language: str) -> dict[str, Any]:
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "advisor.web.findings",
            language,
            "" if self._config is None else str(self._config),
            *map(str, self._paths),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            said, wrong = await asyncio.wait_for(child.communicate(), _LIMIT_SECONDS)
        except BaseException:
            child.kill()
            await child.wait()
            raise
        if child.returncode != 0:
            lines = wrong.decode(errors="replace").strip().splitlines()
            return {"trouble": lines[-1] if lines else "the findings could not be made"}
        document: dict[str, Any] = json.loads(said)
        return document


def documents(
    paths: Sequence[Path], language_code: str, config: Path | None = None
) -> list[dict[str, Any]]:
    """The findings of every host of the stores as JSON, each with its sentences in a language."""
    from advisor.assess import assess_each
    from advisor.commands.reading import Reading, Source
    from advisor.config import load
    from advisor.period import parse_duration
    from advisor.report.language import Language
    from advisor.report.words import DIMENSIONS, tone, verdict

    language = Language.load(language_code)
    settings = load(config)
    since, look_back = map(parse_duration, (settings.periods.since, settings.periods.look_back))
    source = Source(tuple(paths), state=settings.service.state)
    found: list[dict[str, Any]] = []
    with source.opened() as history:
        reading = Reading(history, settings, since, look_back, None, source)
        for assessment in assess_each(reading, history.hosts()):
            for finding in assessment.findings:
                document = finding.to_json()
                document["tone"] = tone(finding)
                document["verdict_text"] = language.text(verdict(finding))
                document["dimension_text"] = language.text(DIMENSIONS[finding.dimension])
                for name in ("reason", "recommendation", "saving"):
                    message = getattr(finding, name)
                    if message is not None:
                        document[name] = language.sentence(message)
                found.append(document)
    return found


def main(arguments: Sequence[str], write: Callable[[str], object]) -> int:
    """Prints the document of one language and its stores; 1 and one line where it cannot."""
    from advisor.errors import AdvisorError
    from telemetry.store import StoreError

    os.nice(_NICER)
    language, config, *paths = arguments
    try:
        found = documents([Path(p) for p in paths], language, Path(config) if config else None)
    except (AdvisorError, StoreError) as error:
        print(error, file=sys.stderr)
        return 1
    write(json.dumps({"made": time.time(), "findings": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], print))
