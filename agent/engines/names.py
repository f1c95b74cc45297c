"""What the rows of engines are named by."""

from __future__ import annotations

from collections.abc import Iterable

from agent.engines.scrape import Target

MOST = 32
"""Engines that are asked at a time."""
MOST_PORTS = 32
"""Ports that rows are named by, in the agent's life; the rest share as many places."""
RANDOM_PORTS = range(32_768, 61_000)
"""What Linux gives to who asks for any port (ip_local_port_range): another one at each start."""


class Names:
    """What rows of engines are named by: the port, or the lowest free place where ports are random.

    An engine that gets a new port at each start would make a new series at each start.
    """

    def __init__(self) -> None:
        self._ports: set[int] = set()
        self._places: dict[Target, str] = {}

    def keep(self, targets: Iterable[Target]) -> None:
        """Names these, and frees the places of all others."""
        targets = list(targets)
        self._places = {t: self._places[t] for t in targets if t in self._places}
        for target in targets:
            if target not in self._places:
                self._places[target] = self._name(target.port)

    def __getitem__(self, target: Target) -> str:
        return self._places[target]

    def _name(self, port: int) -> str:
        taken = set(self._places.values())
        own = port in self._ports or len(self._ports) < MOST_PORTS
        if port not in RANDOM_PORTS and own and str(port) not in taken:
            self._ports.add(port)
            return str(port)
        return next(name for n in range(MOST) if (name := f"other-{n}") not in taken)
