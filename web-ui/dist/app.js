// The dashboard: one table of the vhosts, a reset and a purge. Everything that a server sends is shown as text only.

const REFRESH_MS = 2000;
const STATUSES = ["HIT", "MISS", "EXPIRED", "STALE", "UPDATING", "REVALIDATED", "BYPASS"];
const COLUMNS = [
  ["Name", (row) => row.name],
  ["Requests", (row) => count(row.requests.requests)],
  ["Hit ratio", (row) => ratio(row.requests.hit_ratio)],
  ...STATUSES.map((word) => [word, (row) => count(row.requests.cache[word]?.requests ?? 0)]),
  ...["2xx", "3xx", "4xx", "5xx"].map((code) => [code, (row) => count(row.requests.responses[code])]),
  ["Received", (row) => bytes(row.requests.bytes_received)],
  ["Sent", (row) => bytes(row.requests.bytes_sent)],
];

const element = (id) => document.getElementById(id);
let token = sessionStorage.getItem("token");
let timer = 0;

const count = (value) => value.toLocaleString("en");
const ratio = (value) => (value === null ? "n/a" : `${(value * 100).toFixed(1)} %`);

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value.toFixed(unit === 0 ? 0 : 1)} ${units[unit]}`;
}

function say(text) {
  // Not written again when it is the same, so that a screen reader is not made to repeat it.
  if (element("message").textContent !== text) element("message").textContent = text;
}

async function call(method, path, body) {
  const headers = { Authorization: `Bearer ${token}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, body: JSON.stringify(body), cache: "no-store" });
  const value = await answer.json();
  if (answer.ok) return value;
  if (answer.status === 401) leave();
  throw new Error(`${value.title}: ${value.detail}`);
}

function cell(tag, text, scope) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (scope) made.scope = scope;
  return made;
}

function show(stats) {
  const rows = [{ name: "Total", requests: stats.total }, ...stats.vhosts].map((row) => {
    const made = document.createElement("tr");
    made.append(...COLUMNS.map(([, read], index) => (index === 0 ? cell("th", read(row), "row") : cell("td", read(row)))));
    return made;
  });
  element("rows").replaceChildren(...rows);
  const cache = stats.cache;
  element("summary").textContent =
    `${count(stats.connections.active)} connections, ${count(cache.objects)} objects, ` +
    `${bytes(cache.memory_used)} of ${bytes(cache.memory_max)}`;
}

async function refresh() {
  clearTimeout(timer);
  const used = token;
  try {
    show(await call("GET", "/api/v1/stats"));
    if (element("message").textContent.startsWith("No figures")) say("");
  } catch (error) {
    say(token ? `No figures: ${error.message}` : error.message);
  }
  if (token && token === used) timer = setTimeout(refresh, REFRESH_MS);
}

function enter() {
  element("enter").hidden = Boolean(token);
  element("board").hidden = !token;
  element("leave").hidden = !token;
  if (token) refresh();
  else element("token").focus();
}

function leave() {
  clearTimeout(timer);
  token = null;
  sessionStorage.removeItem("token");
  element("rows").replaceChildren();
  element("summary").textContent = "";
  enter();
}

element("columns").append(...COLUMNS.map(([title]) => cell("th", title, "col")));
element("leave").addEventListener("click", leave);

element("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  token = element("token").value.trim();
  element("token").value = "";
  sessionStorage.setItem("token", token);
  say("");
  enter();
});

element("reset").addEventListener("click", async () => {
  if (!confirm("Start all counters from zero?")) return;
  try {
    const before = await call("POST", "/api/v1/stats/reset", { scope: "all" });
    say(`Reset after ${count(before.total.requests)} requests.`);
    refresh();
  } catch (error) {
    say(`Not reset. ${error.message}`);
  }
});

element("purge").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const done = await call("POST", "/api/v1/purges", { match: { url: element("url").value } });
    say(done.matched > 0 ? `Purged ${count(done.matched)} objects.` : `Nothing was stored there. ${done.hint ?? ""}`);
  } catch (error) {
    say(`Not purged. ${error.message}`);
  }
});

enter();
