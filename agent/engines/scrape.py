"""One look at an inference engine: its metrics page, its model, its version."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from agent.engines.engines import Engines, Reading
from agent.engines.loopback import FetchFailed, Page, fetch

_OLLAMA_PATH = "/api/ps"
_MODELS_PATH = "/v1/models"
_LONGEST_NAME = 128


class Target(NamedTuple):
    """Where an engine listens."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Scrape:
    """What an engine told at `time`, seconds that never step."""

    time: float
    reading: Reading
    model: str | None
    version: str | None


class Scraper:
    """Asks engines; used from one background thread. Raises FetchFailed with the reason."""

    def __init__(
        self,
        engines: Engines,
        get: Callable[[str, int, str], Page] = fetch,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engines = engines
        self._get = get
        self._clock = clock
        self._paths: dict[Target, str] = {}
        self._versions: dict[Target, str | None] = {}

    def look(self, target: Target) -> Scrape:
        """The engine at a port. Raises FetchFailed where there is none that is known."""
        known = self._paths.get(target)
        paths = (known,) if known else (*self._engines.paths, _OLLAMA_PATH)
        answers: list[str] = []
        for path in paths:
            page = self._get(target.address, target.port, path)
            at = self._clock()
            if page.status != 200:
                answers.append(f"{path}: HTTP {page.status}")
                continue
            if path == _OLLAMA_PATH:
                found = _ollama(page.text)
                model = None if found is None else found[1]
                reading = None if found is None else found[0]
            else:
                reading = self._engines.read(page.text)
                model = None if reading is None else reading.model
            if reading is None:
                answers.append(f"{path}: no known engine's page")
                continue
            self._paths[target] = path
            if model is None and path != _OLLAMA_PATH:
                model, weights = self._model(target)
                if weights is not None:
                    levels = {**reading.levels, "weights_bytes": weights}
                    reading = replace(reading, levels=levels)
            return Scrape(at, reading, model, self._version(target, reading.engine))
        self._paths.pop(target, None)
        raise FetchFailed(f"{'; '.join(answers)}; are the engine's metrics switched on?")

    def _model(self, target: Target) -> tuple[str | None, float | None]:
        """The first model that the OpenAI-compatible list names; adapters name their parent.

        And the bytes of its weights, which llama.cpp tells as `meta.size` (its server's README:
        https://github.com/ggml-org/llama.cpp/tree/master/tools/server).
        """
        listed = self._json(target, _MODELS_PATH)
        models = listed.get("data") if isinstance(listed, dict) else None
        for model in models if isinstance(models, list) else ():
            if isinstance(model, dict) and not model.get("parent"):
                name, meta = model.get("id"), model.get("meta")
                size = meta.get("size") if isinstance(meta, dict) else None
                return (
                    name[:_LONGEST_NAME] if isinstance(name, str) and name else None,
                    float(size) if isinstance(size, int) and size > 0 else None,
                )
        return None, None

    def _version(self, target: Target, engine: str) -> str | None:
        if engine == "ollama":
            path: str | None = "/api/version"
        else:
            path = self._engines.named(engine).version_path
        if path is None:
            return None
        if target not in self._versions:
            told = self._json(target, path)
            version = told.get("version") if isinstance(told, dict) else None
            self._versions[target] = version[:40] if isinstance(version, str) else None
        return self._versions[target]

    def _json(self, target: Target, path: str) -> Any:
        try:
            page = self._get(target.address, target.port, path)
            return json.loads(page.text) if page.status == 200 else None
        except (FetchFailed, ValueError):
            return None


def _ollama(text: str) -> tuple[Reading, str | None] | None:
    """The models that Ollama holds (https://docs.ollama.com/api/ps), None for another answer.

    It tells no requests and no use of a cache; what it tells is what its models take, with the
    cache of their context, and how much of that did not fit. Releases before 0.1.42 leave out a
    `size_vram` of 0 (https://github.com/ollama/ollama/issues/4840).
    """
    try:
        models = json.loads(text)["models"]
        held = [(int(m["size"]), int(m.get("size_vram", 0)), str(m["name"])) for m in models]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    levels: dict[str, float] = {}
    size, on_gpu = sum(s for s, _, _ in held), sum(g for _, g, _ in held)
    if size > 0 and 0 <= on_gpu <= size:
        levels["host_offload_ratio"] = 1 - on_gpu / size
        levels["models_bytes"] = float(size)
    names = {name for _, _, name in held}
    why: Mapping[str, str] = {"kv_cache_usage_ratio": "ollama does not tell it"}
    return Reading("ollama", levels, {}, None, why), names.pop() if len(names) == 1 else None


__all__ = ["Scrape", "Scraper", "Target"]
