"""Every metric has a source, and every source a metric."""

from agent.metrics_page import Sources, page
from telemetry.metrics import FAMILIES


def test_every_metric_names_its_source_and_none_is_left_over() -> None:
    sources = Sources.load()
    for family in FAMILIES:
        for metric in family.metrics:
            assert all(sources.find(family.measurement, metric.name))
    assert sources.unused() == []
    text = "\n".join(page())
    assert all(f"| `{m.name}` |" in text for f in FAMILIES for m in f.metrics)
