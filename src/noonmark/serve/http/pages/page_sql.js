// SQL: an editor, answers as tables and charts, history, and the time of an answer as a picture.

import { request, rows } from "/console/api.js";
import { objects, readable } from "/console/catalog.js";
import { chart, timeline } from "/console/chart.js";
import { failure, h, isNumber, isTime, plural, span, table } from "/console/dom.js";
import { editor } from "/console/editor.js";

export const title = "SQL";
const HISTORY = "noonmark.history";
const KEPT = 50;
const EXAMPLE = "SELECT name, kind, since, upper FROM noonmark.frontiers;";
/** What somebody can begin with who has nothing yet. */
const FIRST = [
  "CREATE SOURCE counter FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1s');",
  "CREATE TABLE orders (id int PRIMARY KEY, item text, amount int);",
];
const INNER = new Set(["progress", "errors", "index", "sink"]);

const kept = () => JSON.parse(localStorage.getItem(HISTORY) || "[]");

function keep(query) {
  const rest = kept().filter((each) => each !== query);
  localStorage.setItem(HISTORY, JSON.stringify([query, ...rest].slice(0, KEPT)));
}

/** Times of one day need not repeat the day. */
function shortened(labels, areTimes) {
  const days = new Set(labels.map((each) => String(each).slice(0, 10)));
  return areTimes && days.size === 1 ? labels.map((each) => each.slice(11, 19) || each) : labels;
}

function asChart(columns, found) {
  const numbers = columns.map((column, at) => ({ ...column, at })).filter(isNumber);
  const label = columns.findIndex((column) => !isNumber(column));
  const x = label >= 0 ? label : columns.length > 1 ? 0 : -1;
  const shown = numbers.filter((column) => column.at !== x).slice(0, 4);
  const taken = found.slice(0, 2000);
  const labels = shortened(taken.map((row, at) => (x < 0 ? at + 1 : String(row[x]))), x >= 0 && isTime(columns[x]));
  const series = shown.map((column) => ({
    name: column.name, values: taken.map((row) => (row[column.at] === null ? null : Number(row[column.at]))),
  }));
  const ordered = x < 0 || isTime(columns[x]) || isNumber(columns[x]);
  return chart(labels, series, { bars: !ordered && taken.length <= 200 });
}

function answer(result, place) {
  if (result.error) {
    if (result.error.position) place(result.error.position);
    return failure(result.error);
  }
  const notices = (result.notices || []).map((each) => h("p", { class: "muted" }, `${each.severity}: ${each.message}`));
  if (!result.desc) return h("div", null, h("p", null, result.ok), notices);
  const { columns } = result.desc;
  const body = h("div", null, table(columns, result.rows));
  const drawable = result.rows.length > 1 && columns.some(isNumber);
  const button = (name, make) => h("button", {
    type: "button", ariaPressed: String(name === "Table"),
    onclick: (event) => {
      for (const each of event.target.parentNode.querySelectorAll("button")) each.ariaPressed = String(each === event.target);
      body.replaceChildren(make());
    },
  }, name);
  const ways = drawable ? [button("Table", () => table(columns, result.rows)), button("Chart", () => asChart(columns, result.rows))] : [];
  return h("div", null, h("div", { class: "bar" }, ways, h("span", { class: "muted" }, plural(result.rows.length, "row"))), body, notices);
}

/** What EXPLAIN TIMESTAMP says, as spans of time and the chosen one. */
export function picture(lines) {
  const number = (line) => Number(/(\d{6,})/.exec(line)?.[1] ?? NaN);
  const spans = [];
  let chosen = null;
  for (const line of lines) {
    const name = /^input (.+): /.exec(line.trim());
    if (name) spans.push({ name: name[1], from: NaN, to: NaN });
    else if (line.includes("query timestamp:")) chosen = number(line) || null;
    else if (line.includes("read frontier:") && spans.length) spans.at(-1).from = number(line);
    else if (line.includes("write frontier:") && spans.length) spans.at(-1).to = number(line);
  }
  const bounded = spans.filter((each) => Number.isFinite(each.from)).map((each) => ({ ...each, to: Number.isFinite(each.to) ? each.to : chosen ?? each.from }));
  return bounded.length ? timeline(bounded, chosen) : null;
}

export function mount(root, [given]) {
  let running = null;
  const out = h("section", { ariaLabel: "Answers", ariaLive: "polite" });
  const runs = h("button", { class: "primary", type: "button", onclick: () => run() }, "Run");
  const cancel = h("button", { type: "button", disabled: true, onclick: () => running?.abort() }, "Cancel");
  const told = h("span", { class: "muted", role: "status" });
  const past = h("ul", { class: "history" });
  const relations = h("ul", { class: "history relations" });
  const field = editor(given || kept()[0] || EXAMPLE, () => run());

  function remember() {
    past.replaceChildren(...kept().map((query) => h("li", null, h("button", {
      class: "link", type: "button", title: query, onclick: () => { field.value = query; },
    }, query))));
    if (!past.children.length) past.append(h("li", { class: "muted" }, "What you run is kept here, in this browser."));
  }

  async function browse() {
    const found = (await objects()).filter((each) => readable(each) || each.kind === "view").filter((each) => !INNER.has(each.kind));
    relations.replaceChildren(...found.map((each) => h("li", null, h("button", {
      class: "link", type: "button", title: `Query ${each.full}`, onclick: () => { field.value = `SELECT * FROM ${each.full} LIMIT 100;`; run(); },
    }, each.full), h("span", { class: "muted" }, each.kind.replace("-", " ")))));
    if (!found.length) relations.append(h("li", { class: "muted" }, "None yet. Try: ", FIRST.map((query) => h("button", {
      class: "link", type: "button", title: query, onclick: () => { field.value = query; },
    }, query))));
  }

  async function work(act) {
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    const start = performance.now();
    runs.disabled = true;
    cancel.disabled = false;
    told.textContent = "running …";
    try {
      out.replaceChildren(...await act(signal));
      told.textContent = span(performance.now() - start);
    } catch (error) {
      const stopped = error.name === "AbortError";
      told.textContent = stopped ? "cancelled" : "";
      out.replaceChildren(stopped ? h("p", { class: "muted" }, "The statement was cancelled.") : failure(error.told || error));
    } finally {
      runs.disabled = false;
      cancel.disabled = true;
    }
  }

  function run() {
    const { text: query, at: start } = field.chosen;
    if (!query.trim()) return undefined;
    keep(field.value);
    remember();
    return work(async (signal) => {
      const results = await request({ query }, { signal });
      field.learn().then(browse).catch(() => {});
      return results.map((each) => h("div", { class: "panel" }, answer(each, (at) => field.point(start + at))));
    });
  }

  const explain = (verb) => work(async (signal) => {
    const found = await rows(`${verb} ${field.chosen.text.trim().replace(/;\s*$/, "")}`, [], { signal });
    const lines = found.map((row) => row["QUERY PLAN"]);
    const drawn = verb === "EXPLAIN TIMESTAMP FOR" ? picture(lines) : null;
    return [h("div", { class: "panel" }, drawn, h("pre", { class: "plan" }, lines.join("\n")))];
  });

  remember();
  browse().catch(() => {});
  root.append(
    h("h1", null, "SQL"),
    h("div", { class: "split" },
      h("div", null,
        field.frame,
        h("div", { class: "bar" }, runs, cancel,
          h("button", { type: "button", onclick: () => explain("EXPLAIN") }, "Explain"),
          h("button", { type: "button", onclick: () => explain("EXPLAIN TIMESTAMP FOR") }, "Explain timestamp"),
          told, h("span", { class: "grow" }),
          h("span", { class: "muted" }, h("kbd", null, "Ctrl"), " + ", h("kbd", null, "Enter"), " runs, ", h("kbd", null, "Ctrl"), " + ", h("kbd", null, "Space"), " completes")),
        out),
      h("aside", { class: "panel", ariaLabel: "Relations and history" }, h("h2", null, "Relations"), relations, h("h2", null, "History"), past)));
  return () => running?.abort();
}
