// Time: one slider over the kept history. Every collection is shown as of it, exactly; and what
// changed between two times comes from SUBSCRIBE, so that nothing between them is missed.

import { request, stream } from "/console/api.js";
import { chart } from "/console/chart.js";
import { objects, readable } from "/console/catalog.js";
import { clock, count, day, failure, h, inOrder, plural, table } from "/console/dom.js";

export const title = "Time";
const ROWS = 200;
const POINTS = 24;
const CHANGES = 2000;

async function asOf(name, time) {
  const [found] = await request({ query: `SELECT * FROM ${name} LIMIT ${ROWS} AS OF ${time}` });
  return found;
}

function changes(name, from, to) {
  return new Promise((resolve) => {
    const found = { columns: [], rows: new Map(), error: null, cut: false };
    let taken = 0;
    const done = () => { link.close(); resolve(found); };
    const link = stream(`SUBSCRIBE TO ${name} WITH (SNAPSHOT = false) AS OF ${from} UP TO ${to + 1}`, {
      columns: (given) => { found.columns = given; },
      row: ([, diff, ...values]) => {
        const key = JSON.stringify(values);
        const known = found.rows.get(key) || { values, diff: 0 };
        known.diff += Number(diff);
        found.rows.set(key, known);
        taken += 1;
        if (taken >= CHANGES) { found.cut = true; done(); }
      },
      end: done,
      error: (told) => { found.error = told; done(); },
    });
  });
}

async function difference(name, from, to) {
  const found = await changes(name, from, to);
  if (found.error) return failure(found.error);
  const columns = found.columns.slice(2);
  const kept = [...found.rows.values()].filter((each) => each.diff !== 0).sort((a, b) => inOrder(JSON.stringify(a.values), JSON.stringify(b.values)) || a.diff - b.diff);
  const signs = new Map(kept.map((each) => [each.values, each.diff > 0 ? "plus" : "minus"]));
  const added = kept.filter((each) => each.diff > 0).length;
  return h("div", null,
    h("p", { class: "muted" }, `${plural(added, "row")} added, ${count(kept.length - added)} removed between ${clock(from)} and ${clock(to)}${found.cut ? ` (the first ${count(CHANGES)} changes)` : ""}`),
    kept.length ? table(columns, kept.map((each) => each.values), { mark: (row) => signs.get(row) }) : null);
}

async function growth(name, low, high) {
  const points = Array.from({ length: POINTS }, (_, at) => Math.round(low + ((high - low) * at) / (POINTS - 1)));
  const answers = await Promise.all(points.map((time) => request({ query: `SELECT count(*) FROM ${name} AS OF ${time}` })));
  const values = answers.map(([each]) => (each.error ? null : Number(each.rows[0][0])));
  return chart(points.map((each) => clock(each).slice(0, 8)), [{ name: `rows of ${name}`, values }]);
}

export function mount(root, [given]) {
  let known = [];
  let bounds = [0, 1];
  let turn = 0;
  const picked = new Set(given ? [given] : []);
  const choices = h("div", { class: "choose", role: "group", ariaLabel: "Collections" });
  const slider = h("input", { type: "range", min: 0, max: 1000, value: 1000, ariaLabel: "Time", oninput: () => move() });
  const other = h("input", { type: "range", min: 0, max: 1000, value: 800, ariaLabel: "Compared with", disabled: true, oninput: () => move() });
  const compare = h("input", { type: "checkbox", onchange: () => { other.disabled = second.hidden = !compare.checked; move(); } });
  const second = h("label", { class: "muted", hidden: true }, "compared with ", other);
  const at = h("strong", { role: "status" });
  const than = h("span", { class: "muted" });
  const cards = h("div", { class: "cards" });
  const time = (input) => Math.round(bounds[0] + ((bounds[1] - bounds[0]) * Number(input.value)) / 1000);

  async function load() {
    known = (await objects()).filter((each) => readable(each) && each.kind !== "index");
    if (!picked.size) known.filter((each) => !["progress", "errors"].includes(each.kind)).slice(-3).forEach((each) => picked.add(each.full));
    const inner = (each) => ["progress", "errors"].includes(each.kind);
    const first = [...known.filter((each) => !inner(each)), ...known.filter(inner)];
    choices.replaceChildren(...first.map((each) => h("label", { class: inner(each) ? "muted" : null }, h("input", {
      type: "checkbox", checked: picked.has(each.full),
      onchange: (event) => { event.target.checked ? picked.add(each.full) : picked.delete(each.full); frame(); },
    }), each.full)));
    frame();
  }

  function frame() {
    const shown = known.filter((each) => picked.has(each.full));
    if (!shown.length) { cards.replaceChildren(h("p", { class: "empty" }, known.length ? "Choose a collection." : "There is nothing to look back at yet.")); return; }
    bounds = [Math.max(...shown.map((each) => each.since ?? 0)), Math.min(...shown.map((each) => (each.upper ?? Date.now()) - 1))];
    if (bounds[1] < bounds[0]) { cards.replaceChildren(h("p", { class: "empty" }, "These have no time in common yet.")); return; }
    move();
  }

  let waiting = null;
  function move() {
    at.textContent = `as of ${day(time(slider))}`;
    than.textContent = compare.checked ? `compared with ${day(time(other))}` : "";
    clearTimeout(waiting);
    waiting = setTimeout(show, 80);
  }

  async function show() {
    const mine = (turn += 1);
    const moment = time(slider);
    const shown = known.filter((each) => picked.has(each.full));
    const made = await Promise.all(shown.map(async (each) => {
      const head = h("h2", null, each.full);
      if (compare.checked) {
        const [from, to] = [time(other), moment].sort((a, b) => a - b);
        return h("section", { class: "panel" }, head, from === to ? h("p", { class: "muted" }, "The same time.") : await difference(each.full, from, to));
      }
      const [answer, drawn] = await Promise.all([asOf(each.full, moment), bounds[1] > bounds[0] ? growth(each.full, bounds[0], bounds[1]) : null]);
      if (answer.error) return h("section", { class: "panel" }, head, failure(answer.error));
      const note = answer.rows.length === ROWS ? `the first ${ROWS} rows` : plural(answer.rows.length, "row");
      return h("section", { class: "panel" }, head, drawn, h("p", { class: "muted" }, note), table(answer.desc.columns, answer.rows));
    }));
    if (mine === turn) cards.replaceChildren(...made);
  }

  root.append(h("h1", null, "Time"),
    h("div", { class: "panel" }, choices,
      h("div", { class: "bar" }, at, than, h("span", { class: "grow" }),
        h("label", null, compare, " compare two times"), h("button", { type: "button", onclick: () => load() }, "To now")),
      slider, second),
    cards);
  load();
  return () => { turn = -1; clearTimeout(waiting); };
}
