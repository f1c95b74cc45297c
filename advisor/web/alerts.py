"""Events of kind `alert` become the alerts that are raised now, or were of late."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.web.picture import AlertNow

KEPT_SECONDS = 86_400.0
"""How long an alert that is over stays on the page."""


class AlertBook:
    """The newest transition of each alert, by host, rule and subject."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, str, str], AlertNow] = {}

    def add(
        self,
        *,
        host: str,
        rule: str,
        time: float,
        raised: bool,
        severity: str,
        text: str,
        gpu_uuid: str | None,
        attributes: Mapping[str, str],
    ) -> None:
        """Takes a transition; an older one than is known of the same alert is passed over."""
        subject = attributes.get("subject") or gpu_uuid or ""
        known = self._newest.get((host, rule, subject))
        if known is None or known.time <= time:
            self._newest[host, rule, subject] = AlertNow(
                host=host,
                rule=rule,
                subject=attributes.get("label") or subject,
                time=time,
                raised=raised,
                severity=severity,
                text=text,
                title=attributes.get("title"),
                gpu_uuid=gpu_uuid,
                owner=attributes.get("owner"),
            )

    def shown(self, now: float) -> tuple[AlertNow, ...]:
        """Raised ones first, the newest first; those that have been over for a day are dropped."""
        old = [
            key
            for key, alert in self._newest.items()
            if not alert.raised and alert.time < now - KEPT_SECONDS
        ]
        for key in old:
            del self._newest[key]
        return tuple(sorted(self._newest.values(), key=lambda a: (not a.raised, -a.time)))
