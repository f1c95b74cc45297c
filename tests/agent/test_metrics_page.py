"""Every metric has a source, and every source a metric."""

from agent.metrics_page import page
from telemetry.metrics import FAMILIES


def test_every_metric_names_its_source_and_none_is_left_over() -> None:
    for family in FAMILIES:
        used = {family.source(metric.name) for metric in family.metrics}
        assert used == set(family.sources)
        names = [metric.name for metric in family.metrics]
        for source in family.sources:
            for written in source.metrics:
                assert any(written in (n, "*") or n.startswith(written.rstrip("*")) for n in names)
    text = "\n".join(page())
    assert all(f"| `{m.name}` |" in text for f in FAMILIES for m in f.metrics)
