// The page: which view is open, and what it is told.
import { amount, language, moment, number, say, span } from "./say.js";
import { h, text } from "./dom.js";
import { Fleet } from "./fleet.js";
import { Live } from "./live.js";
import { Server } from "./server.js";

const at = id => document.getElementById(id);
const VIEWS = ["now", "alerts", "findings", "reports"];
const live = new Live(changed, beat);
const fleet = new Fleet(live);
const server = new Server(at("server"), live);
let view = "now", wanted = null, heard = false, drawn = -1000;

function route() {
  const [, first = "", name = ""] = location.hash.split("/");
  view = VIEWS.includes(first) ? first : "now";
  try {
    wanted = first === "server" ? decodeURIComponent(name) : null;
  } catch {
    wanted = null;
  }
  for (const one of VIEWS) at(one).hidden = one !== view;
  for (const link of document.querySelectorAll("nav a"))
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  for (const link of document.querySelectorAll(".languages a")) link.hash = location.hash;
  if (view === "findings") showFindings();
  if (view === "reports") showReports();
  if (heard) draw(new Set(live.hosts.keys()), true);
}
addEventListener("hashchange", () => {
  route();
  if (wanted != null) at("server").scrollIntoView({ block: "start" });
});

// What arrives is kept at once and drawn a few times a second, however fast it comes.
let waiting = null;
const touchedSince = new Set();
let alertsSince = false;
function changed(touched, alerts) {
  if (live.connected) heard = true;
  if (touched.has(server.host)) server.extend();
  for (const name of touched) touchedSince.add(name);
  alertsSince ||= alerts;
  waiting ??= setTimeout(() => {
    waiting = null;
    if (!document.hidden) draw(new Set(touchedSince), alertsSince);
    touchedSince.clear();
    alertsSince = false;
    beat();
  }, performance.now() - drawn < 250 ? 250 : 0);
}
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && heard) draw(new Set(live.hosts.keys()), true);
});

function draw(touched, alerts) {
  drawn = performance.now();
  const names = [...live.hosts.keys()].sort();
  at("overview").hidden = names.length === 1;
  if (alerts) showAlerts();
  if (view !== "now") return;
  const open = wanted ?? (names.length === 1 ? names[0] : null);
  if (names.length !== 1) fleet.draw(open);
  if (open == null) server.close();
  else {
    server.open(open);
    if (touched.has(open)) server.update();
  }
  if (live.cost != null) text(at("cost"), say("look_cost", { ms: number(live.cost * 1000) }));
}

function beat() {
  const hosts = [...live.hosts.values()];
  const ages = hosts.map(host => live.age(host)).filter(age => age != null);
  const newest = ages.length ? Math.min(...ages) : null;
  const late = hosts.filter(host => live.late(host));
  const silence = (performance.now() - live.heard) / 1000;
  text(at("age"), newest == null ? (heard ? say("no_data") : say("loading")) : say("data_age", { age: span(newest) }));
  const cut = !live.connected && silence > 3 || silence > 30;
  at("age").classList.toggle("old", cut || late.length > 0 || newest == null);
  let words = "";
  if (cut) words = say("offline", { age: newest == null ? "?" : span(newest) });
  else if (live.trouble) words = say("trouble", { why: live.trouble });
  else if (heard && !hosts.length) words = say("nothing");
  else if (hosts.length && late.length === hosts.length) words = newest == null ? say("nothing") : say("stale", { age: span(newest) });
  else if (late.length === 1) words = say("late_one", { host: late[0].host, age: late[0].time == null ? "?" : span(live.age(late[0])) });
  else if (late.length) {
    const named = late.slice(0, 3).map(host => host.host).join(", ");
    words = say("late_many", { count: String(late.length), hosts: late.length > 3 ? `${named}, …` : named });
  }
  text(at("banner"), words);
  at("banner").hidden = !words;
  if (!document.hidden && view === "now") server.beat();
}

function showAlerts() {
  const raised = live.alerts.filter(alert => alert.raised).length;
  text(at("alert-count"), raised ? String(raised) : "");
  const list = at("alert-list");
  list.replaceChildren(live.alerts.length
    ? h("ul", { className: "items" }, live.alerts.map(alert => h("li", { className: alert.raised ? "" : "was" },
      h("p", {}, h("span", { className: `chip ${alert.raised ? alert.severity : ""}` }, alert.raised ? say(alert.severity) : say("over")),
        " ", h("strong", {}, alert.title ?? alert.rule), alert.snoozed_until ? h("span", { className: "chip" }, say("snoozed", { time: moment(alert.snoozed_until) })) : null),
      h("p", {}, h("a", { href: `#/server/${encodeURIComponent(alert.host)}` }, alert.host), " ", h("span", { className: "soft" }, `${moment(alert.time)} · ${alert.rule}`)),
      h("p", {}, alert.text))))
    : h("p", { className: "soft" }, say("no_alerts")));
}

async function fetched(place, url, wait, show) {
  place.replaceChildren(h("p", { className: "soft", role: "status" }, wait));
  try {
    const answer = await fetch(url);
    if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
    place.replaceChildren(...show(await answer.json()));
  } catch (error) {
    place.replaceChildren(h("p", {}, say("failed", { why: String(error.message ?? error).slice(0, 300) })));
  }
}

function showFindings() {
  fetched(at("finding-list"), `/api/findings?lang=${language}`, say("findings_wait"), document => {
    if (document.trouble) return [h("p", {}, say("failed", { why: document.trouble }))];
    if (!document.findings) return [h("p", { className: "soft" }, say("findings_fleet"))];
    if (!document.findings.length) return [h("p", { className: "soft" }, say("findings_none"))];
    const hosts = new Map();
    for (const finding of document.findings) {
      if (!hosts.has(finding.host)) hosts.set(finding.host, []);
      hosts.get(finding.host).push(finding);
    }
    return [
      h("p", { className: "soft" }, say("findings_made", { time: moment(document.made) })),
      ...[...hosts].map(([host, found]) => h("div", { className: "items" },
        h("h2", {}, h("a", { href: `#/server/${encodeURIComponent(host)}` }, host)),
        h("ul", { className: "items" }, found.map(finding => h("li", {},
          h("p", {}, h("span", { className: `chip ${finding.tone}` }, finding.verdict_text), " ", h("strong", {}, finding.dimension_text),
            " ", h("span", { className: "soft" }, say("confidence", { share: amount(finding.confidence, "ratio") }))),
          h("p", {}, finding.reason),
          finding.recommendation ? h("p", {}, finding.recommendation) : null)))))];
  });
}

function showReports() {
  fetched(at("report-list"), "/api/reports", say("loading"), document => [
    document.reports.length
      ? h("ul", { className: "items" }, document.reports.map(report => h("li", {},
        h("a", { href: `/reports/${encodeURIComponent(report.name)}` }, report.name), " ", h("span", { className: "soft" }, moment(report.made)))))
      : h("p", { className: "soft" }, say("reports_none"))]);
}

route();
