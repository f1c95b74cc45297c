"""The command lines of a log become process rows, as the agent would have kept them."""

from __future__ import annotations

from telemetry.window import Key
from telemetry.workload import Signatures, redact

SEPARATOR = " | "
"""Between the command lines of one GPU in Talla's own CSV."""

_SLOTS = 16


class Processes:
    """Gives each process the slot that it keeps while it is seen, without its secrets."""

    def __init__(self, signatures: Signatures) -> None:
        self._signatures = signatures
        self._texts: dict[str, dict[str, str]] = {}
        self._slots: dict[str, dict[int, str]] = {}

    def rows(self, gpu_uuid: str, cell: str) -> dict[Key, dict[str, str]]:
        """The texts of the processes in a cell, by their key."""
        commands = [c.strip() for c in cell.split(SEPARATOR) if c.strip()][:_SLOTS]
        before = self._slots.get(gpu_uuid, {})
        slots: dict[int, str] = {}
        new: list[str] = []
        for command in commands:
            kept = next((s for s, c in before.items() if c == command and s not in slots), None)
            if kept is None:
                new.append(command)
            else:
                slots[kept] = command
        for command in new:
            slots[next(s for s in range(_SLOTS) if s not in slots)] = command
        self._slots[gpu_uuid] = slots
        return {("gpu_process", gpu_uuid, str(s)): self._told(slots[s]) for s in sorted(slots)}

    def _told(self, command: str) -> dict[str, str]:
        known = self._texts.get(command)
        if known is None:
            shown = redact(command)
            known = self._texts[command] = {"command": shown}
            match = self._signatures.match(command)
            if match is not None:
                known["workload"] = match.kind.value
                known["tool"] = match.tool
                if match.model is not None:
                    known["model"] = match.model
                    known["model_source"] = "command"
        return known
