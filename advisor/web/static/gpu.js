// One GPU as a row of the server's table.
import { amount, causeText, ownerKind, say, span, stateText, meaning } from "./say.js";
import { h, key, text } from "./dom.js";

export const gpuName = gpu => (gpu.index != null ? `GPU ${gpu.index}` : gpu.uuid.slice(0, 12));

export class GpuRow {
  constructor(gpu) {
    this.name = h("span");
    this.model = h("small");
    this.key = h("span");
    this.state = h("span");
    this.since = h("small");
    this.cause = h("small");
    this.activity = meter();
    this.more = h("small");
    this.memory = meter();
    this.needed = h("small");
    this.power = meter();
    this.heat = h("small");
    this.rx = h("span");
    this.tx = h("small");
    this.owner = h("span");
    this.what = h("small");
    this.element = h("tr", {},
      h("th", { scope: "row", title: gpu.uuid }, this.name, this.model),
      cell("st", "state", h("span", { className: "state" }, this.key, this.state), this.since, this.cause),
      cell("ac", "activity", this.activity.element, this.more),
      cell("me", "memory", this.memory.element, this.needed),
      cell("po", "power", this.power.element, this.heat),
      cell("pc", "pcie", this.rx, this.tx),
      cell("ow", "whose", this.owner, this.what));
  }
  update(gpu, now) {
    const r = gpu.readings ?? {};
    const silent = gpu.readings == null;
    text(this.name, gpuName(gpu));
    text(this.model, gpu.name ?? "");
    if (this.shown !== gpu.state) {
      this.key.replaceChildren(key(gpu.state));
      this.shown = gpu.state;
    }
    text(this.state, silent ? say("lost") : stateText(gpu.state));
    this.state.title = [meaning(gpu.state), ...(gpu.evidence ?? [])].join("\n");
    const notes = { standby: say("standby"), loading: say("loading_model") };
    text(this.since, [gpu.state_since != null ? say("since", { time: span(now - gpu.state_since) })
      : silent && gpu.time != null ? say("age", { age: span(now - gpu.time) }) : "", notes[gpu.note] ?? ""].filter(Boolean).join(", "));
    text(this.cause, gpu.error ? say("error", { error: gpu.error })
      : gpu.cause ? `${say("cause")}: ${causeText(gpu.cause)}` : "");
    this.activity.set(r.utilization_ratio, amount(r.utilization_ratio, "ratio"));
    text(this.more, [["sm", r.sm_active_ratio], ["tensor", r.tensor_active_ratio], ["dram", r.dram_active_ratio]]
      .filter(([, value]) => value != null)
      .map(([name, value]) => say(name, { share: amount(value, "ratio") })).join(", "));
    const total = r.memory_total_bytes;
    this.memory.set(total ? r.memory_used_bytes / total : null,
      r.memory_used_bytes == null ? say("unread")
        : total ? say("used_of", { used: amount(r.memory_used_bytes, "bytes"), total: amount(total, "bytes") })
          : amount(r.memory_used_bytes, "bytes"),
      gpu.memory_needed_bytes != null && total ? gpu.memory_needed_bytes / total : null);
    text(this.needed, gpu.memory_needed_bytes != null ? say("needed", { needed: amount(gpu.memory_needed_bytes, "bytes") }) : "");
    const limit = r.power_limit_watts;
    this.power.set(limit ? r.power_watts / limit : null,
      r.power_watts == null ? say("unread")
        : limit ? say("of_limit", { power: amount(r.power_watts, "watts"), limit: amount(limit, "watts") })
          : amount(r.power_watts, "watts"));
    text(this.heat, r.temperature_celsius != null ? amount(r.temperature_celsius, "celsius") : "");
    const rate = value => (value == null ? say("unread") : amount(value, "bytes/second"));
    text(this.rx, r.pcie_rx_bytes_per_second == null && r.pcie_tx_bytes_per_second == null ? say("unread")
      : say("in", { rate: rate(r.pcie_rx_bytes_per_second) }));
    text(this.tx, r.pcie_tx_bytes_per_second == null ? "" : say("out", { rate: rate(r.pcie_tx_bytes_per_second) }));
    const processes = gpu.processes ?? [];
    text(this.owner, owners(gpu).join(", ") || (silent ? "" : say("nobody")));
    text(this.what, [...new Set(processes.map(p => [
      [p.name, p.pid ? `(${p.pid})` : ""].filter(Boolean).join(" "), p.owner_kind ? ownerKind(p.owner_kind) : "",
      p.model ? say("model", { name: p.model }) : ""].filter(Boolean).join(", ")))].join("; "));
  }
}
export const owners = gpu => [...new Set((gpu.processes ?? []).map(p => p.owner ?? say("unknown_owner")))];

function cell(name, label, ...children) {
  return h("td", { className: name, "data-label": say(label) }, ...children);
}
function meter() {
  const fill = h("i"), mark = h("b", { hidden: true }), words = h("span");
  const bar = h("span", { className: "bar", ariaHidden: "true" }, fill, mark);
  return {
    element: h("span", {}, words, bar),
    set(share, said, marked) {
      text(words, said);
      bar.hidden = share == null || Number.isNaN(share);
      if (!bar.hidden) fill.style.width = `${Math.min(100, Math.max(0, share * 100)).toFixed(1)}%`;
      mark.hidden = marked == null;
      if (marked != null) mark.style.left = `${Math.min(99.5, marked * 100).toFixed(1)}%`;
    },
  };
}
