"""The description as Grafana's JSON, through the types of grafana-foundation-sdk.

https://github.com/grafana/grafana-foundation-sdk; it has no query of InfluxDB's, so that one is
here, by the fields that Grafana's InfluxQL editor saves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from grafana_foundation_sdk.builders import common as looks
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import stat, statetimeline, table, text, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.text import TextMode

from dashboards.description import Dashboard, Kind, Panel, Per, Query
from dashboards.states import STATES

SOURCE = dashboard.DataSourceRef(type_val="influxdb", uid="${source}")
_COLOURS = dict(STATES.values())


class InfluxQuery(Dataquery):
    """One InfluxQL query of a panel."""

    def __init__(self, letter: str, query: Query, result_format: str) -> None:
        self._letter, self._query, self._format = letter, query, result_format

    def to_json(self) -> dict[str, object]:
        document: dict[str, object] = {
            "refId": self._letter,
            "datasource": SOURCE,
            "query": self._query.influxql(),
            "rawQuery": True,
            "resultFormat": self._format,
        }
        if self._query.alias and self._format == "time_series":
            document["alias"] = self._query.alias
        return document


class _Ready(Builder[Dataquery]):
    def __init__(self, query: InfluxQuery) -> None:
        self._query = query

    def build(self) -> Dataquery:
        return self._query


class _Annotation(dashboard.AnnotationQuery):
    """Events as annotations: InfluxQL's are kept beside the other keys of the annotation."""

    def to_json(self) -> dict[str, object]:
        return {
            **super().to_json(),
            "query": 'SELECT "text", "severity" FROM "event" WHERE "kind" = \'alert\''
            ' AND "host" =~ /^$host$/ AND $timeFilter GROUP BY "host", "rule"',
            "textColumn": "text",
            "tagsColumn": "severity,host,rule",
        }


class _Annotations(Builder[dashboard.AnnotationQuery]):
    def build(self) -> dashboard.AnnotationQuery:
        return _Annotation(
            name="Alerts", datasource=SOURCE, enable=True, hide=False, icon_color="#d55e00"
        )


_Drawn = timeseries.Panel | stat.Panel | table.Panel | statetimeline.Panel | text.Panel


def document(described: Dashboard) -> str:
    """The dashboard as JSON that Grafana provisions or imports."""
    page = (
        build.Dashboard(described.title)
        .uid(described.uid)
        .description(described.about)
        .tags(["talla"])
        .editable()
        .timezone("browser")
        .time(described.since, "now")
        .refresh(described.refresh)
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .variables(list(_variables(described)))
        .annotations([_Annotations()])
        .link(
            build.DashboardLink("Talla")
            .type(dashboard.DashboardLinkType.DASHBOARDS)
            .tags(["talla"])
            .as_dropdown(True)
            .include_vars(True)
            .keep_time(True)
        )
    )
    y = 0
    for title, panels in described.panels:
        page = page.with_row(build.Row(title).grid_pos(dashboard.GridPos(h=1, w=24, x=0, y=y)))
        y += 1
        x = tallest = 0
        for panel in panels:
            if x + panel.width > 24:
                x, y, tallest = 0, y + tallest, 0
            place = dashboard.GridPos(h=panel.height, w=panel.width, x=x, y=y)
            page = page.with_panel(_panel(panel, place))
            x += panel.width
            tallest = max(tallest, panel.height)
        y += tallest
    model = page.build()
    for number, panel_model in enumerate(model.panels or [], 1):
        panel_model.id_val = number
    return json.dumps(json.loads(json.dumps(model, cls=JSONEncoder)), indent=2, sort_keys=True)


def _variables(described: Dashboard) -> Iterator[Builder[dashboard.VariableModel]]:
    yield build.DatasourceVariable("source").label("Data source").type("influxdb")
    yield _asked("host", "Server", 'SHOW TAG VALUES FROM "host" WITH KEY = "host"')
    if described.gpu:
        yield _asked(
            "gpu",
            "GPU",
            'SHOW TAG VALUES FROM "gpu" WITH KEY = "gpu_uuid" WHERE "host" =~ /^$host$/',
        )
    if described.windows:
        first = described.windows[0]
        yield (
            build.CustomVariable("window")
            .label("Windows")
            .description("10-second windows for the last days, 5-minute windows for longer")
            .values(",".join(described.windows))
            .current(dashboard.VariableOption(True, first, first))
            .options(
                [dashboard.VariableOption(one == first, one, one) for one in described.windows]
            )
        )


def _asked(name: str, label: str, query: str) -> Builder[dashboard.VariableModel]:
    return (
        build.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(dashboard.VariableOption(True, "All", "$__all"))
    )


def _panel(panel: Panel, place: dashboard.GridPos) -> _Drawn:
    builder = _drawn(panel)
    builder = builder.title(panel.title).description(panel.about).grid_pos(place)
    if panel.kind is Kind.TEXT:
        return builder
    form = "table" if panel.kind is Kind.TABLE else "time_series"
    if panel.kind is Kind.STAT and panel.reduce == "count":
        form = "table"
    builder = (
        builder.datasource(SOURCE)
        .unit(panel.unit)
        .no_value("no data")
        .thresholds(_thresholds(panel))
        .targets(
            [
                _Ready(InfluxQuery(chr(ord("A") + i), query, form))
                for i, query in enumerate(panel.queries)
            ]
        )
    )
    if panel.low is not None:
        builder = builder.min(panel.low)
    if panel.high is not None:
        builder = builder.max(panel.high)
    if any(query.per is Per.INTERVAL for query in panel.queries):
        windows = {query.window for query in panel.queries}
        builder = builder.interval("5m" if windows == {"5m"} else "10s")
    for name, colour in _COLOURS.items():
        if any(query.alias == name for query in panel.queries):
            fixed = {"mode": "fixed", "fixedColor": colour}
            builder = builder.override_by_name(name, [_config("color", fixed)])
    for name, unit in panel.units:
        builder = builder.override_by_name(name, [_config("unit", unit)])
    for name, url in panel.links:
        link = {"title": "Open ${__value.text}", "url": url}
        builder = builder.override_by_name(name, [_config("links", [link])])
    if form == "table" and any(query.per is Per.RANGE for query in panel.queries):
        # The time of an aggregate over everything is the start of the range: it says nothing.
        builder = builder.override_by_name("Time", [_config("custom.hidden", True)])
    return builder


def _config(name: str, value: object) -> dashboard.DynamicConfigValue:
    return dashboard.DynamicConfigValue(name, value)


def _thresholds(panel: Panel) -> Builder[dashboard.ThresholdsConfig]:
    steps = [dashboard.Threshold(None, "#0072b2")]
    steps += [dashboard.Threshold(value, colour) for value, colour in panel.marks]
    return build.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(steps)


def _drawn(panel: Panel) -> _Drawn:
    """The builder of the panel's kind, with its looks."""
    match panel.kind:
        case Kind.LINES | Kind.BARS:
            bars = panel.kind is Kind.BARS
            legend = (
                looks.VizLegendOptions()
                .display_mode(common.LegendDisplayMode.LIST)
                .placement(common.LegendPlacement.BOTTOM)
                .show_legend(True)
                .calcs([])
            )
            drawn = (
                timeseries.Panel()
                .legend(legend)
                .line_width(1)
                .fill_opacity(80 if bars else 0)
                .show_points(common.VisibilityMode.NEVER)
                .span_nulls(False)
                .draw_style(common.GraphDrawStyle.BARS if bars else common.GraphDrawStyle.LINE)
            )
            if panel.marks:
                style = looks.GraphThresholdsStyleConfig().mode(
                    common.GraphTresholdsStyleMode.DASHED
                )
                drawn = drawn.thresholds_style(style)
            if bars:
                drawn = drawn.stacking(looks.StackingConfig().mode(common.StackingMode.NORMAL))
            return drawn
        case Kind.STAT:
            reduced = looks.ReduceDataOptions().calcs([panel.reduce]).values(False)
            if panel.reduce == "count":
                reduced = reduced.fields(f"/^{panel.queries[0].values[0].label}$/")
            return (
                stat.Panel()
                .reduce_options(reduced)
                .graph_mode(common.BigValueGraphMode.NONE)
                .color_mode(common.BigValueColorMode.VALUE)
            )
        case Kind.TABLE:
            return table.Panel().show_header(True)
        case Kind.TIMELINE:
            mapped = {
                state: dashboard.ValueMappingResult(text=label, color=colour, index=i)
                for i, (state, (label, colour)) in enumerate(STATES.items())
            }
            return (
                statetimeline.Panel()
                .mappings([dashboard.ValueMap(options=mapped)])
                .merge_values(True)
                .fill_opacity(90)
                .line_width(0)
                .show_value(common.VisibilityMode.NEVER)
            )
        case Kind.TEXT:
            return text.Panel().mode(TextMode.MARKDOWN).content(panel.text)
