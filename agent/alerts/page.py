"""Writes docs/alert-rules.md: `python -m agent.alerts.page`."""

from __future__ import annotations

from collections.abc import Iterator

from agent.alerts.rulebook import Rule, Rulebook
from agent.commands.rules import condition

_HEAD = """\
# Alert rules

Generated from `agent/alerts/rules/*.toml` by `make regen`. The rules are judged in the agent, on
closed windows and states, so that they work without a network. `talla-agent rules` lists them as
they hold on a machine; `talla-agent rules --test` runs the series beside each.

Change, silence or add rules in `/etc/talla/rules.d/*.toml`, with the keys of the shipped files:

```toml
[[rule]]                       # a shipped rule: these keys change, the others stay
name = "gpu_idle_held"
raise_seconds = 7200

[[rule]]
name = "host_idle"
enabled = false

[[exemption]]                  # where and when rules do not apply; patterns, * is anything
rules = ["gpu_idle_held"]
users = ["ana"]
days = ["sat", "sun"]
hours = "20:00-08:00"
timezone = "Europe/Madrid"
reason = "her notebooks run over the weekend"
```

An exemption takes `rules`, `hosts`, `units`, `users`, `workloads`, `days`, `hours`, `timezone`,
`until` and `reason`. Delivery is stopped for a while, without stopping the evaluation, by
`talla-advisor snooze RULE --host H --for 8h`. That a whole host went silent no agent can tell: the
advisor's service raises `host_silent` after `[service] silent_seconds`, and `history_unreadable`
where it cannot read alerts itself.

The series beside the rules are made by hand: they test levels, durations and syntax, and prove
nothing about real servers. What does is in [alert-proof.md](alert-proof.md).
"""


def page() -> str:
    """The page."""
    return _HEAD + "\n" + "\n".join(line for r in Rulebook.load().rules for line in _rule(r))


def _rule(rule: Rule) -> Iterator[str]:
    yield f"## {rule.name}\n"
    title = rule.title.format(subject="SUBJECT", host="HOST", value="VALUE")
    yield f"*{title[:1].upper()}{title[1:]}* ({rule.severity.value}, each {rule.scope})\n"
    yield f"{condition(rule)}\n"
    yield f"Look first at: {rule.look}.\n"
    if rule.suppresses:
        names = ", ".join(f"`{name}`" for name in rule.suppresses)
        yield f"While it is raised these are silent for the same subject: {names}.\n"
    yield f"Source: {rule.source}.\n"


if __name__ == "__main__":
    print(page(), end="")
