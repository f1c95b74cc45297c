"""How long the states of one server's 400 days take: 8 GPUs, 921,600 windows of 5 minutes.

python -m tests.states.speed

Windows are those of the list of awkward work, drawn at random in stretches of hours and shaken by
up to two per cent, so that few are alike. Prints the processor seconds; making them is not counted.
"""

from __future__ import annotations

import random
import time
from collections import Counter

from telemetry.metrics import GPU as GPU_FAMILY
from telemetry.states import FIELDS, HOST_FIELDS, Classifier, Jobs, Surroundings
from telemetry.window import Frame, Key, Row
from telemetry.workload import Kind
from tests.states.awkward import KEYS, cases
from tests.states.stage import START

DAYS, GPUS, TIER = 400, 8, 300
_SHARES = frozenset(
    name
    for m in GPU_FAMILY.metrics
    for s, name in m.fields()
    if m.unit == "ratio" or s.value.endswith("ratio")
)
_DISK_FIELDS = ("read_await_seconds", "reads_per_second", "read_bytes_per_second")
_NIC_FIELDS = ("rx_bytes_per_second", "tx_bytes_per_second", "speed_bits_per_second")


def _drawn(count: int, chance: random.Random) -> list[tuple[dict[Key, Row], Kind | None]]:
    """Whole windows with the kind of work in each, in stretches of one to eight hours."""
    staged = [
        ([w.rows for w in case.windows() if w.tier == TIER], case.kind)
        for case in cases()
        if not case.control or "disk" in case.name
    ]
    found: list[tuple[dict[Key, Row], Kind | None]] = []
    while len(found) < count:
        rows, kind = chance.choice(staged)
        found += [(chance.choice(rows), kind) for _ in range(chance.randrange(12, 96))]
    return found[:count]


def _frame(
    key: Key, fields: tuple[str, ...], rows: list[Row | None], chance: random.Random
) -> Frame:
    frame = Frame(key)
    frame.start = [START + TIER * i for i in range(len(rows))]
    frame.seconds = [TIER] * len(rows)
    frame.texts = [{}] * len(rows)
    for name in fields:
        column: list[float | None] = []
        top = 1.0 if name in _SHARES else float("inf")
        for row in rows:
            value = None if row is None else row.values.get(name)
            shaken = None if value is None else value * chance.uniform(0.98, 1.02)
            column.append(None if shaken is None else min(top, shaken))
        frame.columns[name] = column
    return frame


def main() -> None:
    chance = random.Random(7)
    count = DAYS * 86400 // TIER
    spent, told = 0.0, Counter[str]()
    for number in range(GPUS):
        drawn = _drawn(count, chance)

        def rows(name: str, drawn: list[tuple[dict[Key, Row], Kind | None]]) -> list[Row | None]:
            return [window.get(KEYS[name]) for window, _ in drawn]

        gpu = _frame(("gpu", f"GPU-{number}"), FIELDS, rows("gpu", drawn), chance)
        around = Surroundings(
            _frame(("host",), HOST_FIELDS, rows("host", drawn), chance),
            (_frame(KEYS["disk"], _DISK_FIELDS, rows("disk", drawn), chance),),
            nics=(_frame(KEYS["nic"], _NIC_FIELDS, rows("nic", drawn), chance),),
        )
        jobs = Jobs([kind for _, kind in drawn], [chance.random() for _ in drawn])
        begun = time.process_time()
        states = Classifier().classify(gpu, around, jobs)
        spent += time.process_time() - begun
        told.update(state.state.value for state in states)
    print(f"{GPUS * count} windows in {spent:.1f} s of processor time: {dict(told)}")


if __name__ == "__main__":
    main()
