// Live: SUBSCRIBE as a table that moves. Changes are taken together until their time is complete,
// so the table is at every moment the relation at one time.

import { stream } from "/console/api.js";
import { objects, readable } from "/console/catalog.js";
import { clock, count, failure, h, headCell, inOrder, tableRow } from "/console/dom.js";

export const title = "Live";
const SHOWN = 300;

export function mount(root, [given]) {
  let link = null;
  let state = null;
  const field = h("input", { class: "grow mono", value: given || "", placeholder: "a relation, or (SELECT ...)", ariaLabel: "Relation or query", list: "relations" });
  field.setAttribute("list", "relations");
  const names = h("datalist", { id: "relations" });
  const button = h("button", { class: "primary", type: "button", onclick: () => (link ? stop() : start()) }, "Subscribe");
  const told = h("p", { class: "muted", role: "status" });
  const out = h("div");

  function stop() {
    link?.close();
    link = null;
    button.textContent = "Subscribe";
  }

  function start() {
    const asked = field.value.trim().replace(/;\s*$/, "");
    if (!asked) return field.focus();
    stop();
    const target = /^(select|with|values)\b/i.test(asked) ? `(${asked})` : asked;
    state = { rows: new Map(), waiting: [], columns: [], fresh: new Set(), changes: 0 };
    button.textContent = "Stop";
    told.textContent = "waiting for the first rows …";
    out.replaceChildren();
    link = stream(`SUBSCRIBE TO ${target} WITH (PROGRESS)`, {
      columns: (columns) => { state.columns = columns.slice(3); },
      row: take,
      end: () => { told.textContent = "It ended: its inputs are complete."; stop(); },
      error: (error) => { out.replaceChildren(failure(error)); told.textContent = ""; stop(); },
    });
    return undefined;
  }

  function take([time, progressed, diff, ...values]) {
    if (!progressed) { state.waiting.push([JSON.stringify(values), values, Number(diff)]); return; }
    for (const [key, row, change] of state.waiting) {
      const known = state.rows.get(key) || { row, count: 0 };
      known.count += change;
      if (known.count === 0) state.rows.delete(key);
      else state.rows.set(key, known);
      if (change > 0) state.fresh.add(key);
      state.changes += 1;
    }
    state.waiting = [];
    state.time = time;
    schedule();
  }

  let drawing = false;
  function schedule() {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => { drawing = false; paint(); });
  }

  function paint() {
    if (!link) return;
    const keys = [...state.rows.keys()].sort(inOrder);
    const total = [...state.rows.values()].reduce((sum, each) => sum + each.count, 0);
    told.textContent = `${count(total)} rows as of ${clock(state.time)} · ${count(state.changes)} changes so far${keys.length > SHOWN ? ` · the first ${SHOWN} are shown` : ""}`;
    const body = h("tbody", null, keys.slice(0, SHOWN).map((key) => {
      const { row } = state.rows.get(key);
      return tableRow(state.columns, row, state.fresh.has(key) ? "flash" : null);
    }));
    state.fresh.clear();
    const scroll = out.querySelector(".scroll");
    const top = scroll?.scrollTop || 0;
    out.replaceChildren(h("div", { class: "scroll", tabIndex: 0, role: "region", ariaLabel: "Rows" }, h("table", null, h("thead", null, h("tr", null, state.columns.map(headCell))), body)));
    out.firstChild.scrollTop = top;
  }

  field.addEventListener("keydown", (event) => event.key === "Enter" && start());
  objects().then((found) => {
    const all = found.filter(readable);
    names.append(...all.map((each) => h("option", { value: each.full })));
    if (given) return;
    const offered = all.filter((each) => !["progress", "errors", "index"].includes(each.kind));
    out.append(offered.length
      ? h("div", null, h("p", { class: "muted" }, "Choose what to watch: its rows, and every change as it happens."),
        h("div", { class: "bar" }, offered.map((each) => h("a", { class: "chip", href: `#/live/${encodeURIComponent(each.full)}` }, each.full))))
      : h("p", { class: "empty" }, "There is nothing to watch yet. Create a table, a source or a view on the SQL page."));
  }).catch((error) => out.append(failure(error.told || error)));
  root.append(h("h1", null, "Live"), h("div", { class: "bar" }, field, names, button), told, out);
  if (given) start();
  return stop;
}
