// All servers, searched, filtered and grouped.
import { amount, say, span, states, stateText } from "./say.js";
import { h, keep, key, text } from "./dom.js";
import { gpuName, owners } from "./gpu.js";

const WORST = ["orphan_held", "stuck", "starved", "unknown", "idle_held", "idle_free", "busy"];

export class Fleet {
  constructor(live) {
    this.live = live;
    this.only = new Set();
    this.search = document.getElementById("search");
    this.group = document.getElementById("group");
    this.place = document.getElementById("fleet");
    this.none = h("p", { className: "soft" });
    for (const element of [this.search, this.group]) element.addEventListener("input", () => this.draw());
    this.filters = new Map(states.map(state => {
      const count = h("span");
      const button = h("button", { type: "button", ariaPressed: "false", onclick: () => this.toggle(state) },
        key(state), h("span", {}, stateText(state)), count);
      document.getElementById("filters").append(button);
      const sum = h("strong");
      const line = h("span", {}, key(state), h("span", {}, stateText(state)), sum);
      document.getElementById("sums").append(line);
      return [state, { button, sum, line }];
    }));
  }
  toggle(state) {
    if (!this.only.delete(state)) this.only.add(state);
    this.filters.get(state).button.ariaPressed = String(this.only.has(state));
    this.draw();
  }
  // What a server did before it fell silent says nothing of now.
  stateOf(host, gpu) {
    return this.live.late(host) ? "unknown" : gpu.state;
  }
  fits(host) {
    if (this.only.size && !(host.gpus ?? []).some(gpu => this.only.has(this.stateOf(host, gpu)))) return false;
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return true;
    const said = [host.host, ...(host.gpus ?? []).flatMap(gpu => [
      gpu.uuid, gpu.name ?? "", stateText(gpu.state), ...owners(gpu), ...(gpu.processes ?? []).flatMap(p => [p.name ?? "", p.model ?? "", p.workload ?? ""])])]
      .join("\n").toLowerCase();
    return words.every(word => said.includes(word));
  }
  groupOf(host) {
    const gpus = host.gpus ?? [];
    switch (this.group.value) {
      case "worst": {
        const worst = WORST.find(state => gpus.some(gpu => this.stateOf(host, gpu) === state));
        return worst ? stateText(worst) : say("no_data");
      }
      case "model": return [...new Set(gpus.map(gpu => gpu.name ?? "?"))].sort().join(", ") || say("no_gpu");
      case "owner": return [...new Set(gpus.flatMap(owners))].sort()[0] ?? say("nobody");
      default: return "";
    }
  }
  draw(selected = this.selected) {
    this.selected = selected;
    const all = [...this.live.hosts.values()].sort((a, b) => a.host.localeCompare(b.host));
    const gpus = all.flatMap(host => (host.gpus ?? []).map(gpu => this.stateOf(host, gpu)));
    text(document.getElementById("fleet-title"), say("servers_count", { n: String(all.length), gpus: String(gpus.length) }));
    for (const [state, { sum, line }] of this.filters) {
      const n = gpus.filter(one => one === state).length;
      text(sum, String(n));
      line.hidden = n === 0;
    }
    const groups = new Map();
    for (const host of all.filter(host => this.fits(host))) {
      const name = this.groupOf(host);
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(host);
    }
    const worst = new Map(WORST.map((state, i) => [stateText(state), i]));
    const place = name => (this.group.value === "worst" ? worst.get(name) ?? WORST.length : 0);
    const named = [...groups].sort(([a], [b]) => place(a) - place(b) || a.localeCompare(b));
    keep(this.place, named, ([name]) => name,
      ([name]) => {
        const list = h("ul", { className: "list" });
        return { list, element: h("div", { className: "group" }, name ? h("h3", {}, name) : null, list) };
      },
      (view, [, hosts]) => keep(view.list, hosts, host => host.host, host => new ServerCard(host),
        (card, host) => card.update(host, this)));
    if (!named.length) {
      text(this.none, say("no_match"));
      this.place.after(this.none);
    } else this.none.remove();
  }
}

class ServerCard {
  constructor(host) {
    this.age = h("small");
    this.sums = h("small", { className: "who" });
    this.cells = h("span", { className: "cells" });
    this.who = h("small", { className: "who" });
    this.link = h("a", { href: `#/server/${encodeURIComponent(host.host)}` },
      h("strong", { title: host.host }, host.host), this.age, this.cells, this.sums, this.who);
    this.element = h("li", {}, this.link);
  }
  update(host, fleet) {
    const { live, selected } = fleet;
    const age = live.age(host), late = live.late(host);
    text(this.age, age == null ? say("no_data") : span(age));
    this.age.classList.toggle("late", late);
    if (selected === host.host) this.link.setAttribute("aria-current", "true");
    else this.link.removeAttribute("aria-current");
    if (this.shown === host && this.late === late) return;
    this.shown = host;
    this.late = late;
    const gpus = host.gpus ?? [];
    keep(this.cells, gpus, gpu => `${gpu.uuid} ${fleet.stateOf(host, gpu)}`,
      gpu => {
        const state = fleet.stateOf(host, gpu);
        return { element: key(state, `${gpuName(gpu)}: ${stateText(state)}`) };
      }, () => {});
    const mean = name => {
      const values = gpus.map(gpu => gpu.readings?.[name]).filter(value => value != null);
      return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
    };
    const total = name => gpus.reduce((sum, gpu) => sum + (gpu.readings?.[name] ?? 0), 0);
    const used = total("memory_used_bytes"), held = total("memory_total_bytes");
    text(this.sums, [
      mean("utilization_ratio") != null ? `${say("activity")} ${amount(mean("utilization_ratio"), "ratio")}` : "",
      held ? `${say("memory")} ${amount(used / held, "ratio")}` : "",
      total("power_watts") ? amount(total("power_watts"), "watts") : ""].filter(Boolean).join(" · "));
    text(this.who, [...new Set(gpus.flatMap(owners))].join(", ") || say("nobody"));
  }
}
