// One chart over time: lines by uPlot, a summary in words, keys that pan and zoom.
import { amount, say, tick, clock } from "./say.js";
import { h } from "./dom.js";

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const colour = i => css(`--l${i % 8}`);
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
export const dash = i => DASHES[Math.floor(i / 8) % DASHES.length].length ? DASHES[Math.floor(i / 8) % DASHES.length] : DASHES[i % 2 ? 1 : 0];

export class Chart {
  // `names` are the lines; `unit` that of their values; `view` pans and zooms.
  constructor(title, unit, view) {
    this.title = title;
    this.unit = unit;
    this.view = view;
    this.names = null;
    this.plot = null;
    this.tip = h("div", { className: "u-tip", hidden: true });
    this.place = h("div", { className: "plot", tabIndex: 0, role: "img" });
    this.element = h("figure", {}, h("figcaption", {}, title), this.place);
    this.place.addEventListener("keydown", event => view.key(event));
    this.place.addEventListener("wheel", event => view.wheel(event, this.place), { passive: false });
    new ResizeObserver(() => {
      if (this.plot && this.place.clientWidth && this.place.clientWidth !== this.plot.width)
        this.plot.setSize({ width: this.place.clientWidth, height: HEIGHT });
    }).observe(this.place);
  }
  show(time, names, columns, since, until) {
    if (!this.plot || names.join("\n") !== this.names) this.build(names);
    this.last = [time, names, columns, since, until];
    this.plot.setData([time, ...columns], false);
    const top = this.unit === "ratio" ? 1 : Math.max(1, ...columns.map(column => column.reduce((a, b) => (b != null && b > a ? b : a), 0))) * 1.08;
    this.plot.batch(() => {
      this.plot.setScale("x", { min: since, max: until });
      this.plot.setScale("y", { min: 0, max: top });
    });
    const empty = !columns.some(column => column.some(value => value != null));
    this.place.classList.toggle("empty", empty);
    this.place.dataset.empty = say("chart_none");
    this.place.dataset.newest = time.at(-1) ?? "";
    this.place.setAttribute("aria-label", this.words(names, columns));
  }
  words(names, columns) {
    const rows = names.map((name, i) => {
      const values = columns[i].filter(value => value != null);
      if (!values.length) return null;
      const mean = values.reduce((a, b) => a + b, 0) / values.length;
      const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
      return say("chart_row", { name, low: amount(low, this.unit), high: amount(high, this.unit), mean: amount(mean, this.unit) });
    }).filter(Boolean);
    return say("chart_of", { what: this.title, rows: rows.join("; ") || say("chart_none") });
  }
  build(names) {
    this.names = names.join("\n");
    this.plot?.destroy();
    const ink = () => css("--soft"), line = () => css("--line");
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "11px system-ui, sans-serif" };
    this.plot = new uPlot({
      width: Math.max(200, this.place.clientWidth),
      height: HEIGHT,
      pxAlign: 0,
      scales: { x: { time: true, range: (u, low, high) => [low, high] }, y: { range: (u, low, high) => [low, high] } },
      series: [{}, ...names.map((name, i) => ({
        label: name, stroke: () => colour(i), width: 1.6, dash: dash(i), points: { show: false }, spanGaps: false,
        show: !this.view.hidden.has(name),
      }))],
      axes: [
        { ...axis, values: (u, splits, space, found, step) => splits.map(s => tick(s, step)), space: 70 },
        { ...axis, size: 72, values: (u, splits) => splits.map(s => amount(s, this.unit)), space: 34 },
      ],
      cursor: { sync: { key: "talla" }, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
      legend: { show: false },
      hooks: {
        setSelect: [u => {
          if (u.select.width < 4) return;
          const from = u.posToVal(u.select.left, "x"), to = u.posToVal(u.select.left + u.select.width, "x");
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          this.view.range(from, to);
        }],
        setCursor: [u => this.hover(u)],
      },
    }, [[], ...names.map(() => [])], this.place);
    this.plot.over.append(this.tip);
    this.plot.over.addEventListener("dblclick", () => this.view.follow());
  }
  hover(u) {
    const i = u.cursor.idx;
    const inside = u.cursor.left >= 0 && i != null && u.over.matches(":hover");
    this.tip.hidden = !inside;
    if (!inside) return;
    const rows = u.series.slice(1).map((s, n) => [s, u.data[n + 1][i]]).filter(([s, v]) => s.show && v != null);
    this.tip.textContent = [clock(u.data[0][i]), ...rows.map(([s, v]) => `${s.label}  ${amount(v, this.unit)}`)].join("\n");
    this.tip.style.left = `${u.cursor.left < u.over.clientWidth / 2 ? u.cursor.left + 12 : u.cursor.left - 12 - this.tip.offsetWidth}px`;
    this.tip.style.top = "4px";
  }
  toggle(name, shown) {
    const i = this.plot?.series.findIndex(s => s.label === name) ?? -1;
    if (i > 0) this.plot.setSeries(i, { show: shown });
  }
  recolour() {
    if (!this.last) return;
    this.names = null;
    this.show(...this.last);
  }
}
const HEIGHT = 190;
