"""`python -m dashboards.generate NAME` prints a dashboard as Grafana's JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from dashboards.agent_health import AGENT_HEALTH
from dashboards.description import Dashboard
from dashboards.fleet import FLEET
from dashboards.gpu import GPU
from dashboards.render import document
from dashboards.right_sizing import RIGHT_SIZING
from dashboards.server import SERVER

DASHBOARDS: Mapping[str, Dashboard] = {
    "fleet": FLEET,
    "server": SERVER,
    "gpu": GPU,
    "right-sizing": RIGHT_SIZING,
    "agent-health": AGENT_HEALTH,
}

if __name__ == "__main__":
    print(document(DASHBOARDS[sys.argv[1]]))
