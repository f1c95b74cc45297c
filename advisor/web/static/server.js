// One server: its GPUs now, and the course of the last hours.
import { amount, causeText, moment, say, span, states, stateText } from "./say.js";
import { h, keep, key, svg, text } from "./dom.js";
import { Chart, dash } from "./chart.js";
import { GpuRow, gpuName } from "./gpu.js";

const GPU_CHARTS = [
  ["utilization_ratio", "utilization", "ratio"],
  ["memory_used_bytes", "gpu_memory", "bytes"],
  ["power_watts", "gpu_power", "watts"],
  ["pcie_rx_bytes_per_second", "pcie_in", "bytes/second"],
  ["pcie_tx_bytes_per_second", "pcie_out", "bytes/second"],
];
const HOST_LINES = [
  ["cpu_busy_ratio", "cpu"], ["cpu_iowait_ratio", "iowait"], ["memory_used_ratio", "ram"],
  ["pressure_io_some_ratio", "io_pressure"], ["pressure_memory_some_ratio", "memory_pressure"],
];
const RANGES = [["15", 900], ["1", 3600], ["2", 7200], ["6", 21600], ["24", 86400], ["7", 604800]];
const LONGEST = 14 * 86400, SHORTEST = 60;

export class Server {
  constructor(place, live) {
    this.place = place;
    this.live = live;
    this.host = null;
    this.hidden = new Set();
    this.width = 7200;
    this.until = null; // null follows now
    this.course = null;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.charts?.forEach(chart => chart.recolour()));
  }
  open(name) {
    if (this.host === name) return;
    this.host = name;
    this.course = null;
    this.hidden.clear();
    this.had = new Set();
    this.until = null;
    this.title = h("h2", {}, name);
    this.age = h("span");
    this.facts = h("p", { className: "facts" });
    this.sums = h("p", { className: "sums" });
    this.rows = h("tbody");
    this.noGpu = h("p", { className: "soft", hidden: true }, say("no_gpu"));
    const head = ["gpu", "state", "activity", "memory", "power", "pcie", "whose"];
    this.table = h("table", { className: "gpus" },
      h("caption", { className: "unseen" }, say("now")),
      h("thead", {}, h("tr", {}, head.map(word => h("th", { scope: "col" }, say(word))))), this.rows);
    this.legend = h("div", { className: "legend" });
    this.bands = h("div", { className: "bands" });
    this.charts = [
      ...GPU_CHARTS.map(([, title, unit]) => new Chart(say(title), unit, this)),
      new Chart(say("host"), "ratio", this),
    ];
    this.hostLegend = h("div", { className: "legend" });
    this.charts.at(-1).element.append(this.hostLegend);
    this.said = h("p", { role: "status" }, say("loading"));
    this.ranges = RANGES.map(([n, seconds]) => h("button", { type: "button", onclick: () => this.span(seconds) }, span(seconds)));
    const tool = (word, sign, act) => h("button", { type: "button", title: say(word), ariaLabel: say(word), onclick: act }, sign);
    this.following = h("button", { type: "button", onclick: () => this.follow() }, say("live"));
    this.place.replaceChildren(
      h("div", { className: "card" },
        h("div", { className: "head" }, this.title, this.age, this.facts), this.sums, this.table, this.noGpu),
      h("div", { className: "card" },
        h("div", { className: "controls" }, this.ranges, h("span", { className: "gap" }),
          tool("earlier", "◀", () => this.pan(-0.5)), tool("later", "▶", () => this.pan(0.5)),
          tool("closer", "+", () => this.zoom(0.5)), tool("wider", "−", () => this.zoom(2)), this.following, this.said),
        this.legend, h("div", { className: "charts" }, this.bands, this.charts.map(chart => chart.element))));
    this.update();
    this.load();
  }
  close() {
    this.host = null;
    this.course = null;
    this.place.replaceChildren();
  }
  get shown() {
    const until = this.until ?? this.live.now();
    return [until - this.width, until];
  }
  // What is known now.
  update() {
    const host = this.live.hosts.get(this.host);
    if (!host) {
      text(this.age, say("no_data"));
      return;
    }
    const r = host.readings ?? {};
    const facts = [
      r.cpu_busy_ratio != null ? `${say("cpu")} ${amount(r.cpu_busy_ratio, "ratio")}` : null,
      r.memory_used_bytes != null && r.memory_total_bytes != null
        ? `${say("ram")} ${say("used_of", { used: amount(r.memory_used_bytes, "bytes"), total: amount(r.memory_total_bytes, "bytes") })}` : null,
      r.pressure_io_some_ratio != null ? `${say("io_pressure")} ${amount(r.pressure_io_some_ratio, "ratio")}` : null,
    ].filter(Boolean);
    keep(this.facts, facts.map((words, i) => ({ words, i })), fact => fact.i,
      () => ({ element: h("span") }), (view, fact) => text(view.element, fact.words));
    const gpus = host.gpus ?? [];
    const sums = states.map(state => [state, gpus.filter(gpu => gpu.readings && gpu.state === state).length]);
    keep(this.sums, sums.filter(([, n]) => n), ([state]) => state,
      ([state]) => {
        const sum = h("strong");
        return { sum, element: h("span", {}, key(state), h("span", {}, stateText(state)), sum) };
      }, (view, [, n]) => text(view.sum, String(n)));
    this.table.hidden = gpus.length === 0;
    this.noGpu.hidden = gpus.length !== 0;
    keep(this.rows, gpus, gpu => gpu.uuid, gpu => new GpuRow(gpu), (row, gpu) => row.update(gpu, this.live.now()));
    this.beat();
  }
  beat() {
    const host = this.live.hosts.get(this.host);
    if (!host || !this.age) return;
    const age = this.live.age(host);
    text(this.age, age == null ? say("no_data") : say("data_age", { age: span(age) }));
    if (this.until == null && this.course && !document.hidden) this.draw();
  }
  // Puts the newest window behind the course, and drops what has left the view.
  extend() {
    const course = this.course, host = this.live.hosts.get(this.host);
    if (!host) return;
    if (!course) this.refresh(); // the last answer was an error
    if (!course || this.until != null) return;
    if (course.step > 10) {
      if (this.live.now() - this.loaded > 60) this.refresh();
      return;
    }
    const start = host.time - (host.window_seconds ?? 10);
    const last = course.time.at(-1) ?? 0;
    if (start <= last) return;
    const known = new Set(course.gpus.map(gpu => gpu.uuid));
    if ((host.gpus ?? []).some(gpu => gpu.readings && !known.has(gpu.uuid)) || start - last > course.step * 1.5) {
      this.refresh(); // a GPU that is new here, or windows that were not told: the server knows better
      return;
    }
    course.time.push(start);
    for (const gpu of course.gpus) {
      const now = (host.gpus ?? []).find(one => one.uuid === gpu.uuid);
      for (const [name] of GPU_CHARTS) {
        const value = now?.readings?.[name] ?? null;
        if (value != null && !gpu.columns[name]) gpu.columns[name] = new Array(course.time.length - 1).fill(null);
        gpu.columns[name]?.push(value);
      }
      if (now?.readings) {
        const run = gpu.states.at(-1);
        if (run && run[2] === now.state && (run[3] ?? null) === (now.cause ?? null) && start - run[1] < 20) run[1] = host.time;
        else gpu.states.push([start, host.time, now.state, now.cause ?? null]);
      }
    }
    for (const [name] of HOST_LINES) course.host[name]?.push(host.readings?.[name] ?? null);
    const from = this.live.now() - this.width - 30;
    let gone = 0;
    while (course.time[gone] < from) gone++;
    if (gone) {
      course.time.splice(0, gone);
      for (const gpu of course.gpus) {
        for (const column of Object.values(gpu.columns)) column.splice(0, gone);
        gpu.states = gpu.states.filter(run => run[1] > from);
      }
      for (const column of Object.values(course.host)) column.splice(0, gone);
    }
  }
  // The course anew for what is shown, once at a time: however fast windows come, an answer arrives.
  refresh() {
    if (!this.asked) this.load();
  }
  // The course over what is shown, from the server.
  async load() {
    const host = this.host, [since, until] = this.shown;
    const asked = (this.asked = {});
    try {
      const query = new URLSearchParams({ host, since: Math.floor(since), until: Math.ceil(until) });
      const answer = await fetch(`/api/course?${query}`, { signal: AbortSignal.timeout(30_000) });
      if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
      const course = await answer.json();
      if (asked !== this.asked) return; // another one was asked for meanwhile
      for (const name of Object.keys(course.host)) if (!HOST_LINES.some(([known]) => known === name)) delete course.host[name];
      this.course = course;
      this.loaded = this.live.now();
      this.wrong = null;
    } catch (error) {
      if (asked !== this.asked) return;
      this.course = null;
      this.wrong = String(error.message ?? error).slice(0, 300);
    }
    this.asked = null;
    this.dress();
    this.draw();
  }
  dress() {
    const course = this.course ?? { gpus: [], host: {} };
    const names = course.gpus.map(gpuName);
    keep(this.legend, names.map((name, i) => ({ name, i })), line => line.name,
      line => {
        const button = h("button", { type: "button", ariaPressed: "true", onclick: () => this.toggle(line.name, button) }, swatch(line.i), line.name);
        return { element: button };
      }, () => {});
    const hosts = HOST_LINES.filter(([name]) => course.host[name]).map(([, word]) => say(word));
    keep(this.hostLegend, hosts.map((name, i) => ({ name, i })), line => line.name,
      line => ({ element: h("span", { className: "state" }, swatch(line.i), h("small", {}, line.name)) }), () => {});
  }
  toggle(name, button) {
    const shown = this.hidden.delete(name) || (this.hidden.add(name), false);
    button.ariaPressed = String(shown);
    for (const chart of this.charts.slice(0, -1)) chart.toggle(name, shown);
  }
  draw() {
    const [since, until] = this.shown;
    const shown = say("shown", { since: moment(since), until: moment(until) });
    text(this.said, this.wrong ? say("failed", { why: this.wrong })
      : this.course && !this.course.time.length ? say("course_none") : shown);
    this.following.ariaPressed = String(this.until == null);
    RANGES.forEach(([, seconds], i) => { this.ranges[i].ariaPressed = String(Math.abs(seconds - this.width) < 1); });
    const course = this.course ?? { time: [], gpus: [], host: {} };
    const names = course.gpus.map(gpuName);
    const none = course.time.map(() => null);
    GPU_CHARTS.forEach(([name], i) => {
      const some = course.gpus.some(gpu => gpu.columns[name]);
      if (some) this.had.add(name); // a chart that was there stays: it may have the focus
      const kept = some || this.had.has(name) || !this.course;
      this.charts[i].element.hidden = !kept;
      if (kept) this.charts[i].show(course.time, names, course.gpus.map(gpu => gpu.columns[name] ?? none), since, until);
    });
    const lines = HOST_LINES.filter(([name]) => course.host[name]);
    this.charts.at(-1).show(course.time, lines.map(([, word]) => say(word)), lines.map(([name]) => course.host[name]), since, until);
    this.drawBands(course, since, until);
  }
  drawBands(course, since, until) {
    keep(this.bands, course.gpus.flatMap(gpu => [{ gpu, part: "name" }, { gpu, part: "band" }]),
      item => `${item.gpu.uuid} ${item.part}`,
      item => ({ element: item.part === "name" ? h("span", {}, gpuName(item.gpu))
        : svg("svg", { viewBox: "0 0 1000 10", preserveAspectRatio: "none", role: "img" }) }),
      (view, item) => {
        if (item.part === "name") return;
        const times = new Map();
        const boxes = [];
        for (const [start, end, state, cause] of item.gpu.states) {
          const from = Math.max(start, since), to = Math.min(end, until);
          if (to <= from) continue;
          const name = cause ? `${stateText(state)}, ${causeText(cause)}` : stateText(state);
          times.set(name, (times.get(name) ?? 0) + to - from);
          boxes.push([state, (from - since) / (until - since) * 1000, (to - from) / (until - since) * 1000]);
        }
        const words = say("chart_of", { what: `${say("states")} ${gpuName(item.gpu)}`,
          rows: [...times].sort((a, b) => b[1] - a[1]).map(([name, seconds]) => `${name} ${span(seconds)}`).join("; ") || say("chart_none") });
        const band = view.element;
        band.setAttribute("aria-label", words);
        if (!view.title) band.append((view.title = svg("title")));
        text(view.title, words);
        const rects = [...band.querySelectorAll("rect")];
        boxes.forEach(([state, x, width], i) => {
          const rect = rects[i] ?? band.appendChild(svg("rect", { y: 0, height: 10 }));
          rect.setAttribute("class", `s-${state}`);
          rect.setAttribute("x", x.toFixed(2));
          rect.setAttribute("width", width.toFixed(2));
        });
        rects.slice(boxes.length).forEach(rect => rect.remove());
      });
  }
  // Moving about.
  span(seconds) {
    this.width = seconds;
    if (this.until != null) this.until = Math.min(this.until, this.live.now());
    this.load();
    this.draw();
  }
  follow() {
    this.until = null;
    this.load();
    this.draw();
  }
  range(from, to) {
    if (!(to - from > 1)) return;
    this.width = Math.min(LONGEST, Math.max(SHORTEST, to - from));
    const middle = (from + to) / 2;
    this.until = Math.min(this.live.now(), middle + this.width / 2);
    this.draw();
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.load(), 250);
  }
  pan(share) {
    const [since, until] = this.shown;
    const move = share * this.width;
    if (until + move >= this.live.now()) this.follow();
    else this.range(since + move, until + move);
  }
  zoom(factor, at = 0.5) {
    const [since, until] = this.shown;
    const width = Math.min(LONGEST, Math.max(SHORTEST, this.width * factor));
    const place = since + (until - since) * at;
    this.range(place - width * at, place + width * (1 - at));
  }
  key(event) {
    const act = { ArrowLeft: () => this.pan(-0.25), ArrowRight: () => this.pan(0.25), "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5), "-": () => this.zoom(2), Home: () => this.follow(), End: () => this.follow() }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }
  // The page scrolls by the wheel alone; with Ctrl it zooms, with Shift or sideways it pans.
  wheel(event, place) {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey) {
      event.preventDefault();
      const box = place.getBoundingClientRect();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)));
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault();
      this.pan(Math.sign(sideways) * 0.1);
    }
  }
}
function swatch(i) {
  const line = svg("svg", { width: 22, height: 8, "aria-hidden": "true" },
    svg("line", { x1: 0, x2: 22, y1: 4, y2: 4, "stroke-width": 3, "stroke-dasharray": dash(i).join(" ") }));
  line.firstChild.style.stroke = `var(--l${i % 8})`;
  return line;
}
