"use strict";
// Everything that comes from the pool becomes text of an element or a number in
// an attribute, nothing else: servers choose their names.

const byId = (id) => document.getElementById(id);

function el(tag, props, ...kids) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props || {})) {
    if (k in e) e[k] = v; else e.setAttribute(k, v);
  }
  e.append(...kids);
  return e;
}

function svg(tag, attrs, ...kids) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attrs || {})) e.setAttribute(k, v);
  e.append(...kids);
  return e;
}

// setText leaves the page alone where nothing changes: selections survive.
function setText(e, text) {
  text = String(text);
  if (e.textContent !== text) e.textContent = text;
}

function setClass(e, name) { if (e.getAttribute("class") !== name) e.setAttribute("class", name); }

function dur(ms) {
  if (ms < 1) return Math.round(ms * 1000) + " µs";
  if (ms < 10) return ms.toFixed(1) + " ms";
  if (ms < 1000) return Math.round(ms) + " ms";
  if (ms < 10e3) return (ms / 1000).toFixed(1) + " s";
  if (ms < 60e3) return Math.round(ms / 1000) + " s";
  const two = (big, one, small, other) => Math.floor(ms / big) + one + (ms % big >= small ? " " + Math.floor(ms % big / small) + other : "");
  if (ms < 3600e3) return two(60e3, " min", 1e3, " s");
  if (ms < 86400e3) return two(3600e3, " h", 60e3, " min");
  return two(86400e3, " d", 3600e3, " h");
}

// ago is short, for columns.
function ago(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min";
  if (s < 86400) return Math.floor(s / 3600) + " h";
  return Math.floor(s / 86400) + " d";
}

const clock = (ms) => new Date(ms).toLocaleTimeString([], {hour12: false}) + "." + String(ms % 1000).padStart(3, "0");
const num = (n) => n.toLocaleString("en");

function bytes(n) {
  if (n < 1000) return n + " B";
  let unit = 0;
  for (n /= 1000; n >= 999.5 && unit < 5; n /= 1000) unit++;
  return n.toFixed(n < 9.995 ? 2 : n < 99.95 ? 1 : 0) + " " + ["kB", "MB", "GB", "TB", "PB", "EB"][unit];
}

// Buttons that end something ask once more.
function danger(button, label, params) {
  button.type = "button";
  button.className = "danger";
  button.textContent = label;
  const name = button.getAttribute("aria-label");
  let timer = 0;
  const show = (text, prefix) => { button.textContent = text; if (name) button.setAttribute("aria-label", prefix + name); };
  const disarm = () => { clearTimeout(timer); timer = 0; show(label, ""); button.classList.remove("armed"); };
  button.addEventListener("click", () => {
    if (!timer) {
      timer = setTimeout(disarm, 4000);
      show("Sure?", "Sure? ");
      button.classList.add("armed");
      return;
    }
    disarm();
    act(params);
  });
  button.addEventListener("blur", disarm);
  return button;
}

async function act(params) {
  try {
    const r = await fetch("?", {method: "POST", body: new URLSearchParams(params)});
    const text = r.ok ? "closed " + (await r.json()).closed : await r.text();
    say(text);
  } catch (e) {
    say("the request failed");
  }
}

let said = 0;
function say(text) {
  said = Date.now();
  setText(byId("status"), text);
}

// ---- gauges, limits, counters, latencies

const gauges = ["live", "borrowed", "idle", "spares", "connecting", "queued", "closing", "processes", "waiting"];

const totals = [
  ["connects", "starts"], ["failures", "failed starts"], ["evicted", "evicted"],
  ["bytesSent", "sent", "bytes on the stdin of processes"], ["bytesReceived", "received", "bytes on the stdout of processes"],
];

// figures fills a list of numbers, once, with pairs of a term and a number.
function figures(box, all) {
  if (!box.firstChild) for (const [id, name] of all) box.append(el("div", {}, el("dt", {textContent: name}), el("dd", {id})));
}

function drawGauges(s) {
  figures(byId("gauges"), gauges.map((g) => ["g-" + g, g]));
  for (const g of gauges) setText(byId("g-" + g), num(s.stats[g]));
}

function drawTotals(s) {
  figures(byId("totals"), totals.map(([key, name]) => ["t-" + key, name]));
  for (const [key, , unit] of totals) {
    const n = s.stats[key], dd = byId("t-" + key);
    setText(dd, unit ? bytes(n) : num(n));
    if (unit) dd.title = num(n) + " " + unit;
  }
}

function drawLimits(s) {
  byId("limits").replaceChildren(...s.limits.map((l) => {
    const share = Math.min(1, l.used / l.max);
    return el("div", {className: share >= 1 ? "full" : ""},
      el("div", {className: "used"}, el("span", {textContent: l.name}), el("span", {textContent: num(l.used) + " of " + num(l.max)})),
      svg("svg", {viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true"},
        svg("rect", {width: share * 100, height: 1})));
  }));
}

// plot makes a figure with bars, once, and gives what redraws it.
function plot(parent, kind, name, n) {
  const head = el("b"), foot = el("p", {className: "quiet"});
  const bars = Array.from({length: n}, (_, i) => svg("rect", {x: i + 0.1, width: 0.8}, svg("title")));
  const image = svg("svg", {viewBox: `0 0 ${n} 1`, preserveAspectRatio: "none", role: "img"}, ...bars);
  const axis = el("div", {className: "axis"});
  parent.append(el("figure", {className: kind}, el("figcaption", {}, el("span", {textContent: name}), head), image, axis, foot));
  return (values, titles, title, below, ticks) => {
    const top = Math.max(1, ...values);
    bars.forEach((bar, i) => {
      // What happened at all is seen.
      const h = values[i] ? Math.max(0.06, values[i] / top) : 0;
      bar.setAttribute("y", 1 - h);
      bar.setAttribute("height", h);
      setText(bar.firstChild, titles(i));
    });
    setText(head, title);
    setText(foot, below);
    image.setAttribute("aria-label", `${name}: ${title}. ${below}`);
    if (!axis.firstChild) for (const [at, text] of ticks) {
      const t = el("span", {textContent: text, className: at === n ? "last" : ""});
      t.style.left = 100 * at / n + "%";
      axis.append(t);
    }
  };
}

const plots = {};
const counters = [["calls", "Calls"], ["failed", "Failed calls"], ["opened", "Sessions opened"], ["closed", "Sessions closed"]];

const sum = (values) => values.reduce((a, b) => a + b, 0);

function drawCounts(s) {
  const total = {
    calls: s.stats.calls, failed: s.stats.calls - (s.stats.outcomes.ok || 0),
    opened: s.stats.opened, closed: sum(Object.values(s.stats.closed)),
  };
  for (const [key, name] of counters) {
    const values = s.series.counts[key], n = values.length;
    plots[key] ||= plot(byId("counts"), key, name, n);
    const recent = sum(values);
    plots[key](values, (i) => `${values[i]} in ${dur(s.series.slot)}, ${dur((n - 1 - i) * s.series.slot)} ago`,
      num(total[key]), `${num(recent)} lately` + (s.covered >= 60e3 ? `, ${(recent / s.covered * 60e3).toFixed(1)} a minute` : ""),
      [[0, dur(s.window) + " ago"], [n, "now"]]);
  }
  const list = (what, all) => what + ": " + (Object.entries(all).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1])
    .map(([k, n]) => `${k} ${num(n)}`).join(", ") || "none");
  setText(byId("tally"), `${list("Calls by end", s.stats.outcomes)}. ${list("Sessions by end", s.stats.closed)}.`);
}

function drawLatency(s) {
  for (const [key, name] of [["queue", "Queue"], ["connect", "Connect"], ["call", "Call"]]) {
    const l = s.latency[key], n = l.buckets.length;
    plots["l-" + key] ||= plot(byId("latency"), key, name, n);
    plots["l-" + key](l.buckets, (i) => (i < n - 1 ? `below ${dur(s.bounds[i])}: ` : `above ${dur(s.bounds[i - 1])}: `) + l.buckets[i],
      l.count ? "p50 " + dur(l.p50) : "none", l.count ? `p90 ${dur(l.p90)}, p99 ${dur(l.p99)}, max ${dur(l.max)}, ${num(l.count)} in all` : "\u00a0",
      [[0, "0"], [5, "1 ms"], [8.4, "10"], [11.7, "100"], [15, "1 s"], [18.3, "10"]]);
  }
}

// ---- tables

// keep makes the children of parent those of want, in that order, moving as few
// as it can: one that moves loses the focus.
function keep(parent, want) {
  const wanted = new Set(want);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  let at = parent.firstElementChild;
  for (const child of want) {
    if (child === at) at = at.nextElementSibling;
    else if (child.parentNode === parent && parent.moveBefore) parent.moveBefore(child, at);
    else parent.insertBefore(child, at);
  }
}

const serverRows = new Map();

function drawServers(s) {
  const rows = s.servers.map((srv) => {
    let r = serverRows.get(srv.server);
    if (!r) {
      r = {cells: {}};
      const cell = (key, label, kind) => (r.cells[key] = el("td", {className: kind || "", "data-label": label}));
      const end = el("td", {className: "act"});
      r.tr = el("tr", {}, el("td", {textContent: srv.server}), cell("says", ""), cell("sessions", "sessions", "num"), cell("busy", "busy", "num"),
        cell("spares", "spares", "num"), cell("calls", "calls", "num"), cell("state", ""), end);
      if (s.actions) end.append(r.close = danger(el("button", {"aria-label": "Close all sessions of " + srv.server}), "Close", {action: "server", server: srv.server}));
      serverRows.set(srv.server, r);
    }
    setText(r.cells.says, [srv.name, srv.version].filter(Boolean).join(" "));
    for (const k of ["sessions", "busy", "spares", "calls"]) setText(r.cells[k], num(srv[k]));
    if (r.close) r.close.hidden = !srv.sessions; // one that is held off may have none
    setText(r.cells.state, {"waiting": "held off", "trying": "on trial"}[srv.backoff] || "");
    return r;
  });
  keep(byId("servers").tBodies[0], rows.map((r) => r.tr));
  const there = new Set(s.servers.map((srv) => srv.server));
  for (const k of serverRows.keys()) if (!there.has(k)) serverRows.delete(k);
}

const columns = [
  ["session", "Session", "id"], ["server", "Server", "server"], ["scope", "Scope", "scope"], ["state", "State", "state"],
  ["calls", "Calls", "calls"], ["used", "Used", "used"], ["opened", "Age", "opened"], ["line", "Timeline", null], ["act", "", null],
];
// falls is whether what the column shows falls. Ages do while moments of opening rise.
const falls = (sort) => sort.startsWith("-") !== ["opened", "used"].includes(sort.replace("-", ""));
const view = {sort: "-opened", q: "", closed: true};

for (const [key, name, sort] of columns) {
  const th = el("th", {className: "c-" + key + (["calls", "used", "opened"].includes(key) ? " num" : ""), scope: "col"});
  if (sort) {
    const b = el("button", {type: "button", textContent: name, "data-sort": sort});
    b.addEventListener("click", () => {
      const falling = ["calls", "used", "opened"].includes(sort) ? "-" + sort : sort;
      const other = falling === sort ? "-" + sort : sort;
      sortBy(view.sort === falling ? other : falling);
    });
    th.append(b);
    for (const dir of ["", "-"]) byId("sort").append(el("option", {value: dir + sort, textContent: name + (falls(dir + sort) ? " ↓" : " ↑")}));
  } else {
    th.append(name || el("span", {className: "hidden", textContent: "Actions"}));
  }
  byId("sessions").tHead.rows[0].append(th);
}
byId("sort").addEventListener("change", (e) => sortBy(e.target.value));

function sortBy(sort) {
  view.sort = sort;
  showSort();
  connect();
}

function showSort() {
  byId("sort").value = view.sort;
  for (const b of byId("sessions").tHead.querySelectorAll("button")) {
    const th = b.parentNode;
    if (b.dataset.sort === view.sort.replace("-", "")) th.setAttribute("aria-sort", falls(view.sort) ? "descending" : "ascending");
    else th.removeAttribute("aria-sort");
  }
}

const sessions = new Map(); // by id: what was sent, and its row
const expanded = new Set();

function status(x) {
  if (x.state !== "live") return x.state;
  return x.spare ? "spare" : x.inFlight > 0 ? "busy" : "idle";
}

function makeRow(id, actions) {
  const r = {cells: {}};
  const cell = (key, label, kind) => (r.cells[key] = el("td", {className: "c-" + key + (kind || ""), "data-label": label || ""}));
  r.open = el("button", {type: "button", textContent: id, "aria-expanded": "false"});
  r.open.addEventListener("click", () => {
    if (!expanded.delete(id)) expanded.add(id);
    drawSessions();
  });
  r.state = el("span"); r.tool = el("span", {className: "tool"});
  r.line = svg("svg", {class: "line", preserveAspectRatio: "none", role: "img"});
  r.tr = el("tr", {"data-id": id}, cell("session"), cell("server"), cell("scope"), cell("state"), cell("calls", "calls", " num"),
    cell("used", "used", " num"), cell("opened", "age", " num"), cell("line"), cell("act", "", " act"));
  for (const k of ["session", "server", "scope", "state", "line", "act"]) r.cells[k].removeAttribute("data-label");
  r.cells.session.append(r.open);
  r.server = el("span", {className: "cut"}); r.cells.server.append(r.server);
  r.scope = el("span", {className: "cut"}); r.cells.scope.append(r.scope);
  r.cells.state.append(r.state, " ", r.tool);
  r.cells.line.append(r.line);
  if (actions) {
    r.close = danger(el("button", {"aria-label": "Close session " + id}), "Close", {action: "session", id});
    r.cells.act.append(r.close);
  }
  r.details = el("dl");
  r.more = el("tr", {className: "more"}, el("td", {colSpan: columns.length}, r.details));
  return r;
}

// fillRow shows what doesn't change with time alone.
function fillRow(r, x) {
  r.x = x;
  const st = status(x);
  setClass(r.tr, x.state === "closed" ? "closed" : "");
  setClass(r.state, "state " + (/^[a-z]+$/.test(st) ? st : ""));
  setText(r.state, x.reason ? "closed: " + x.reason : st + (x.inFlight > 1 ? " " + x.inFlight : ""));
  setText(r.server, x.server);
  r.server.title = [x.server, x.name, x.version].filter(Boolean).join(" ");
  setText(r.scope, x.oneShot ? "one-shot" : x.scope);
  r.scope.title = x.scope;
  r.cells.scope.classList.toggle("blank", !x.oneShot && !x.scope);
  setText(r.cells.calls, num(x.calls));
  if (r.close) r.close.hidden = x.state === "closed" || x.state === "closing";
  drawLine(r, x);
}

let epoch = 0, now = 0, windowMS = 1; // of the last update

function drawLine(r, x) {
  const at = (ms) => (ms - epoch) / 1000, least = windowMS / 1000 / 150;
  const bar = (begin, took, kind, y, h, title) =>
    svg("rect", {x: at(begin), width: Math.max(least, took / 1000), y, height: h, class: kind}, ...(title ? [svg("title", {}, title)] : []));
  const forever = 1e9;
  const parts = [bar(x.opened, x.closed ? x.closed - x.opened : forever, "idle", 8, 2)];
  if (x.running) {
    parts.push(bar(x.opened, x.running - x.opened, "start", 5, 8, "start of the process, " + dur(x.running - x.opened)));
    parts.push(bar(x.running, forever, "connect", 3, 12, "handshake"));
  } else if (x.state === "connecting" || x.state === "queued") {
    parts.push(bar(x.opened, forever, "connect", 3, 12, x.state));
  }
  for (const s of x.spans) {
    const kind = {"call": "call", "failed": "failed", "connect": "connect"}[s.kind] || "failed", title = spanText(s);
    if (!s.kind.startsWith("connect")) {
      parts.push(bar(s.begin, s.took, kind, 3, 12, title));
      continue;
    }
    // What is too short to be seen is widened to the left, where nothing is: the
    // first call often comes at once.
    const end = s.begin + s.took, second = Math.max(s.took - (s.start || 0), least * 1000), first = Math.max(s.start || 0, least * 1000);
    if (s.start) parts.push(bar(end - second - first, first, "start", 5, 8, title));
    parts.push(bar(end - second, second, kind, 3, 12, title));
  }
  if (x.tool && x.inFlight) parts.push(bar(x.toolSince, forever, "call", 3, 12, x.tool));
  if (x.closed) parts.push(bar(x.closed, 0, "end", 0, 18, "closed: " + x.reason));
  r.line.replaceChildren(...parts);
  r.line.setAttribute("aria-label", lineText(x));
}

// spanText says what a span was, a connect's two parts too.
function spanText(s) {
  const parts = s.start ? `: start of the process ${dur(s.start)}, handshake ${dur(s.took - s.start)}` : "";
  return `${s.n > 1 ? s.n + " × " : ""}${s.kind}, ${dur(s.took)}, at ${clock(s.begin)}${parts}`;
}

// lineText is a timeline for those who can't see it.
function lineText(x) {
  const count = (kind) => x.spans.reduce((n, s) => s.kind === kind ? n + s.n : n, 0);
  const good = count("call"), failed = count("failed");
  return ["Timeline", ...x.spans.filter((s) => s.kind.startsWith("connect")).map(spanText),
    good + failed ? `${num(good + failed)} call${good + failed === 1 ? "" : "s"}` + (failed ? ", failures among them" : "") : "no calls",
    ...(x.tool && x.inFlight ? [`${x.tool} under way`] : []), ...(x.closed ? ["closed: " + x.reason] : [])].join("; ");
}

function fillDetails(r, x) {
  const facts = [
    ["Opened", new Date(x.opened).toLocaleString()], ["Closed", x.closed ? `${new Date(x.closed).toLocaleString()}, ${x.reason}` : ""],
    ["Server", x.server], ["Says it is", [x.name, x.version].filter(Boolean).join(" ")], ["Protocol", x.protocol], ["Process", x.pid],
    ["Start", x.spans.filter((s) => s.kind.startsWith("connect")).map(spanText).join("; ")],
    ["Scope", x.oneShot ? "none: one-shot" : x.scope], ["In flight", x.inFlight || ""], ["Calls find it", x.closed ? "" : x.kept ? "yes" : "no"],
    ["Last error", x.lastError],
  ].filter(([, v]) => v);
  const kids = facts.flatMap(([k, v]) => [el("dt", {textContent: k}), el("dd", {textContent: v})]);
  if (x.stderr) kids.push(el("dt", {textContent: "Stderr"}), el("dd", {}, el("pre", {textContent: x.stderr, tabIndex: 0})));
  const text = JSON.stringify([facts, x.stderr]);
  if (r.detailed !== text) {
    r.detailed = text;
    r.details.replaceChildren(...kids);
  }
}

let order = [];

function drawSessions() {
  const want = [];
  for (const id of order) {
    const r = sessions.get(id);
    if (!r) continue;
    const x = r.x;
    setText(r.tool, x.tool && x.inFlight ? `${x.tool} ${ago(now - x.toolSince)}` : x.running ? `handshake ${ago(now - x.running)}` : "");
    setText(r.cells.used, x.used ? ago(now - x.used) : "");
    setText(r.cells.opened, ago((x.closed || now) - x.opened));
    r.line.setAttribute("viewBox", `${(now - windowMS - epoch) / 1000} 0 ${windowMS / 1000} 18`);
    const open = expanded.has(id);
    r.open.setAttribute("aria-expanded", open);
    want.push(r.tr);
    if (open) {
      fillDetails(r, x);
      want.push(r.more);
    }
  }
  keep(byId("sessions").tBodies[0], want);
}

function takeSessions(s) {
  for (const x of s.sessions) {
    let r = sessions.get(x.id);
    if (!r) sessions.set(x.id, r = makeRow(x.id, s.actions));
    fillRow(r, x);
  }
  order = s.order;
  const there = new Set(order);
  for (const id of sessions.keys()) {
    if (!there.has(id)) {
      sessions.delete(id);
      expanded.delete(id);
    }
  }
  setText(byId("shown"), order.length < s.matching ? `${num(order.length)} shown of ${num(s.matching)} that match, ${num(s.total)} in all`
    : order.length < s.total ? `${num(order.length)} of ${num(s.total)}` : num(s.total));
  byId("none").hidden = order.length > 0;
  setText(byId("none"), s.total ? "No session matches." : "No session yet.");
  byId("sessions").classList.toggle("still", !s.actions);
}

// ---- events

const maxEvents = 200; // of calls, of lines of output, and of others
const shownEvents = {call: [], output: [], other: []};
const outputKinds = ["stderr", "junk on stdout"];

function takeEvents(all) {
  const list = byId("events");
  for (const e of all) {
    const kind = e.tool ? "call" : outputKinds.includes(e.kind) ? "output" : "other";
    const li = el("li", {className: `${e.level} of-${kind}`}, el("time", {textContent: clock(e.at)}), el("span", {className: "kind", textContent: e.kind}),
      el("bdi", {textContent: e.server}));
    if (e.session) {
      const b = el("button", {type: "button", textContent: e.session, title: "Search for this session"});
      b.addEventListener("click", () => { byId("search").value = e.session; search(); });
      li.append(b);
    }
    if (e.tool) li.append(el("bdi", {textContent: e.tool}));
    if (e.took) li.append(el("span", {textContent: dur(e.took)}));
    if (e.text) li.append(el("bdi", {className: "text", textContent: e.text.trim()}));
    list.prepend(li);
    shownEvents[kind].push(li);
    if (shownEvents[kind].length > maxEvents) shownEvents[kind].shift().remove();
  }
}

// showEvents says what isn't there.
function showEvents(s) {
  setText(byId("left-out"), s.leftOut ? `${num(s.leftOut)} line${s.leftOut === 1 ? "" : "s"} of output left out` : "");
  const hidden = (kind) => byId("events").classList.contains("no-" + kind);
  byId("no-event").hidden = Object.entries(shownEvents).some(([kind, all]) => all.length && !hidden(kind));
}

// ---- the stream

let stream = null, fresh = true, retry = 0, paused = false;

function connect() {
  clearTimeout(retry);
  if (stream) stream.close();
  stream = null;
  const asked = (format) => "?" + new URLSearchParams({format, q: view.q, sort: view.sort, closed: view.closed ? "yes" : "no"});
  byId("json").href = asked("json");
  if (paused || document.hidden) return;
  fresh = true;
  const mine = stream = new EventSource(asked("events"));
  mine.onopen = () => { fresh = true; };
  mine.onmessage = (m) => { if (mine === stream) update(JSON.parse(m.data)); };
  mine.onerror = () => {
    setClass(byId("status"), "lost");
    setText(byId("status"), "connection lost, trying again…");
    if (mine.readyState === EventSource.CLOSED && mine === stream) retry = setTimeout(connect, 3000);
  };
}

let latest = null;

function update(s) {
  now = s.now;
  windowMS = s.window;
  epoch ||= now;
  if (fresh) { // all of it comes again
    fresh = false;
    byId("events").replaceChildren();
    for (const kind in shownEvents) shownEvents[kind] = [];
  }
  document.title = s.title;
  setText(byId("title"), s.title);
  setClass(byId("status"), s.attached ? "live" : "");
  if (Date.now() - said > 4000) setText(byId("status"), s.attached ? "live" : "no pool is attached");
  for (const w of document.querySelectorAll(".window")) setText(w, "the last " + dur(s.window));
  byId("idle").hidden = !s.actions;
  drawGauges(s);
  drawLimits(s);
  drawCounts(s);
  drawTotals(s);
  drawLatency(s);
  drawServers(s);
  takeSessions(s);
  drawSessions();
  takeEvents(s.events);
  showEvents(latest = s);
}

// ---- what the user does

let typing = 0;
function search() {
  clearTimeout(typing);
  typing = setTimeout(() => { view.q = byId("search").value; connect(); }, 150);
}
byId("search").addEventListener("input", search);
byId("closed").addEventListener("change", (e) => { view.closed = e.target.checked; connect(); });
for (const [id, kind] of [["calls", "call"], ["output", "output"]]) {
  byId(id).addEventListener("change", (e) => {
    byId("events").classList.toggle("no-" + kind, !e.target.checked);
    if (latest) showEvents(latest);
  });
}
byId("pause").addEventListener("click", (e) => {
  paused = !paused;
  e.target.setAttribute("aria-pressed", paused);
  setText(e.target, paused ? "Go on" : "Pause");
  setClass(byId("status"), "");
  setText(byId("status"), paused ? "paused" : "connecting…");
  connect();
});
danger(byId("idle"), "Close all idle", {action: "idle"});
document.addEventListener("visibilitychange", connect);
document.addEventListener("keydown", (e) => {
  const typed = e.target.matches?.("input, select, textarea");
  if (e.key === "/" && !typed && !e.ctrlKey && !e.metaKey && !e.altKey) {
    e.preventDefault();
    byId("search").focus();
  } else if (e.key === "Escape" && e.target === byId("search") && e.target.value) {
    e.target.value = "";
    search();
  }
});

showSort();
connect();
