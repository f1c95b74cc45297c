"""The servers together: work that fits on fewer of them, inference's share, and payback."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.message import Message, say
from advisor.pooling import FleetTeller, Pool, inference_sentence
from advisor.report.report import Report, Server
from advisor.report.section import FleetSection


@dataclass(frozen=True, slots=True)
class Paid:
    """What a server's purchase comes to beside renting the like."""

    server: Server
    sentence: Message


@dataclass(frozen=True, slots=True)
class Together:
    """The pools in which a server would be free, and the sentences that compare."""

    pools: tuple[Pool, ...]
    inference: Message | None
    paid: tuple[Paid, ...]


def build(report: Report) -> Together | None:
    """No section for a single server without prices."""
    paid = tuple(
        Paid(server, server.assessment.payback.sentence)
        for server in report.servers
        if server.assessment.payback is not None
    )
    if len(report.servers) < 2:
        return Together((), None, paid) if paid else None
    teller = FleetTeller()
    for server in report.servers:
        teller.add(server.assessment)
    fleet = teller.fleet()
    pools = tuple(pool for pool in fleet.pools if pool.free)
    inference = inference_sentence(fleet)
    return Together(pools, inference, paid) if pools or inference or paid else None


SECTION = FleetSection("together", 150, say("The servers together"), build)
