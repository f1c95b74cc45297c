// What is known now: told by the server as it changes, and how old it is.
export class Live {
  constructor(changed, beat) {
    this.hosts = new Map();
    this.alerts = [];
    this.trouble = null;
    this.cost = null;
    this.offset = null; // the server's clock less ours, in seconds
    this.heard = performance.now();
    this.connected = false;
    this.changed = changed;
    setInterval(beat, 1000);
    this.open();
  }
  open() {
    const source = new EventSource("/api/live");
    source.onmessage = message => this.take(JSON.parse(message.data));
    source.onerror = () => {
      this.connected = false;
      // A server that answered an error is asked again; a lost one is by the browser itself.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.open(), 5000);
      this.changed(new Set(), false);
    };
  }
  take(document) {
    this.connected = true;
    this.heard = performance.now();
    this.offset = document.time - Date.now() / 1000;
    this.trouble = document.trouble ?? null;
    this.cost = document.look_cpu_seconds ?? this.cost;
    const touched = new Set();
    if (document.whole) {
      for (const name of this.hosts.keys()) touched.add(name);
      this.hosts.clear();
    }
    for (const name of document.gone ?? []) {
      this.hosts.delete(name);
      touched.add(name);
    }
    for (const host of document.hosts) {
      this.hosts.set(host.host, host);
      touched.add(host.host);
    }
    if (document.alerts) this.alerts = document.alerts;
    this.changed(touched, Boolean(document.alerts));
  }
  now() {
    return Date.now() / 1000 + (this.offset ?? 0);
  }
  age(host) {
    return host.time == null ? null : Math.max(0, this.now() - host.time);
  }
  // Three windows and the time that one takes to arrive.
  late(host) {
    const age = this.age(host);
    return age == null || age > 3 * Math.max(10, host.window_seconds ?? 10) + 5;
  }
}
