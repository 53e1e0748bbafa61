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
const RETRY_MS = 2000;

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

/** How many rows there were at times over the history. What was true at a time stays true: it is asked once. */
async function growth(name, low, high, known) {
  const points = Array.from({ length: POINTS }, (_, at) => Math.round(low + ((high - low) * at) / (POINTS - 1)));
  const values = await Promise.all(points.map(async (time) => {
    const key = `${name} ${time}`;
    if (!known.has(key)) known.set(key, request({ query: `SELECT count(*) FROM ${name} AS OF ${time}` }).catch(() => [{ error: true }]));
    const [each] = await known.get(key);
    return each.error ? null : Number(each.rows[0][0]);
  }));
  return { points, values };
}

function drawn(name, { points, values }, moment) {
  const share = (moment - points[0]) / Math.max(1, points.at(-1) - points[0]);
  return chart(points.map((each) => clock(each).slice(0, 8)), [{ name: `rows of ${name}`, values }], { at: [share] });
}

export function mount(root, [given]) {
  let known = [];
  let bounds = [0, 1];
  let turn = 0;
  let waiting = null;
  const picked = new Set(given ? [given] : []);
  const counted = new Map();
  const choices = h("div", { class: "choose", role: "group", ariaLabel: "Collections" });
  const slider = h("input", { type: "range", min: 0, max: 1000, value: 1000, ariaLabel: "Time", oninput: () => move() });
  const other = h("input", { type: "range", min: 0, max: 1000, value: 800, ariaLabel: "Compared with", disabled: true, oninput: () => move() });
  const compare = h("input", { type: "checkbox", onchange: () => { other.disabled = second.hidden = !compare.checked; move(); } });
  const second = h("label", { class: "muted", hidden: true }, "compared with ", other);
  const at = h("strong", { role: "status" });
  const than = h("span", { class: "muted" });
  const ends = h("div", { class: "ends muted" });
  let playing = false;
  const plays = h("button", { type: "button", onclick: () => play() }, "▶ Play");
  const cards = h("div", { class: "cards" }, h("p", { class: "empty" }, "Reading the catalog …"));
  const time = (input) => Math.round(bounds[0] + ((bounds[1] - bounds[0]) * Number(input.value)) / 1000);

  async function load() {
    known = (await objects()).filter((each) => readable(each) && each.kind !== "index");
    const inner = (each) => ["progress", "errors"].includes(each.kind);
    if (!picked.size) known.filter((each) => !inner(each)).slice(-3).forEach((each) => picked.add(each.full));
    const first = [...known.filter((each) => !inner(each)), ...known.filter(inner)];
    const box = (each) => h("label", null, h("input", {
      type: "checkbox", checked: picked.has(each.full),
      onchange: (event) => { event.target.checked ? picked.add(each.full) : picked.delete(each.full); frame(); },
    }), each.full);
    const inside = first.filter(inner);
    choices.replaceChildren(...first.filter((each) => !inner(each)).map(box), inside.length ? h("details", {
      open: choices.querySelector("details")?.open || inside.some((each) => picked.has(each.full)),
    }, h("summary", null, "bindings and bad records of sources"), h("div", { class: "choose" }, inside.map(box))) : "");
    frame();
  }

  function frame() {
    const shown = known.filter((each) => picked.has(each.full));
    if (!shown.length) { cards.replaceChildren(h("p", { class: "empty" }, known.length ? "Choose a collection." : "There is nothing to look back at yet.")); return; }
    bounds = [Math.max(...shown.map((each) => each.since ?? 0)), Math.min(...shown.map((each) => (each.upper ?? Date.now()) - 1))];
    if (bounds[1] < bounds[0]) {
      cards.replaceChildren(h("p", { class: "empty" }, "There is no time yet at which all of these can be read: a view may be computing its first contents."));
      clearTimeout(waiting);
      waiting = setTimeout(load, RETRY_MS);
      return;
    }
    move();
  }

  function say() {
    at.textContent = `as of ${day(time(slider))}`;
    than.textContent = compare.checked ? `compared with ${day(time(other))}` : "";
    ends.replaceChildren(h("span", null, clock(bounds[0])), h("span", null, clock(bounds[1])));
  }

  function move() {
    say();
    clearTimeout(waiting);
    waiting = setTimeout(show, 80);
  }

  /** What a card says at a moment. The chart is there first or last, whichever is ready: rows do not wait for it. */
  async function contents(each, moment, place) {
    if (compare.checked) {
      const [from, to] = [time(other), moment].sort((a, b) => a - b);
      return [from === to ? h("p", { class: "muted" }, "The same time.") : await difference(each.full, from, to)];
    }
    const answer = await asOf(each.full, moment);
    if (answer.error) return [place, failure(answer.error)];
    const note = answer.rows.length === ROWS ? `the first ${ROWS} rows` : plural(answer.rows.length, "row");
    return [place, h("p", { class: "muted" }, note), table(answer.desc.columns, answer.rows)];
  }

  async function show() {
    const mine = (turn += 1);
    const moment = time(slider);
    const shown = known.filter((each) => picked.has(each.full));
    const names = shown.map((each) => each.full);
    for (const gone of [...cards.children].filter((each) => !names.includes(each.dataset.name))) gone.remove();
    await Promise.all(shown.map(async (each) => {
      let card = [...cards.children].find((known) => known.dataset.name === each.full);
      if (!card) {
        card = h("section", { class: "panel" }, h("h2", null, each.full), h("p", { class: "muted" }, "reading …"));
        card.dataset.name = each.full;
        cards.append(card);
      }
      card.ariaBusy = "true";
      const place = h("div", { class: "history-chart" });
      if (!compare.checked && bounds[1] > bounds[0]) {
        growth(each.full, bounds[0], bounds[1], counted).then((found) => mine === turn && place.replaceChildren(drawn(each.full, found, moment)), () => {});
      }
      const found = await contents(each, moment, place).catch((error) => [failure(error.told || error)]);
      if (mine !== turn) return;
      card.replaceChildren(h("h2", null, each.full), ...found);
      card.ariaBusy = "false";
    }));
  }

  /** Through the history from where the slider is, one step when the last one is shown. */
  async function play() {
    if (playing) { playing = false; return; }
    playing = true;
    plays.textContent = "❚❚ Pause";
    if (Number(slider.value) >= 1000) slider.value = 0;
    while (playing && turn >= 0 && Number(slider.value) < 1000) {
      slider.value = Number(slider.value) + 20;
      say();
      await Promise.all([show(), new Promise((done) => { setTimeout(done, 250); })]);
    }
    playing = false;
    plays.textContent = "▶ Play";
  }

  root.append(h("h1", null, "Time"),
    h("div", { class: "panel" }, choices,
      h("div", { class: "bar" }, at, than, h("span", { class: "grow" }),
        h("label", null, compare, " compare two times"), plays, h("button", { type: "button", onclick: () => { slider.value = 1000; load(); } }, "To now")),
      slider, ends, second),
    cards);
  load();
  return () => { turn = -1; playing = false; clearTimeout(waiting); };
}
