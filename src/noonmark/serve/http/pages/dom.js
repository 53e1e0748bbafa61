// Elements, tables, numbers and times for people; work that repeats while it is looked at.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else if (name in element && !(element instanceof SVGElement) && name !== "list") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const NUMBERS = new Set([20, 21, 23, 26, 700, 701, 790, 1700]);
const TIMES = new Set([1082, 1114, 1184]);
export const isNumber = (column) => NUMBERS.has(column.type_oid);
export const isTime = (column) => TIMES.has(column.type_oid);

export const text = (value) =>
  value === null ? "NULL" : typeof value === "object" ? JSON.stringify(value) : String(value);

/** Rows as a table; `more` rows at a time, for an answer may have a million. */
export function table(columns, rows, { mark = null, more = 500 } = {}) {
  const body = h("tbody");
  let shown = 0;
  const button = h("button", { type: "button", onclick: () => extend() });
  const extend = () => {
    for (const row of rows.slice(shown, shown + more)) body.append(tableRow(columns, row, mark?.(row), mark !== null));
    shown = Math.min(rows.length, shown + more);
    button.textContent = `Show more (${count(rows.length - shown)} left)`;
    button.hidden = shown === rows.length;
  };
  extend();
  const head = h("thead", null, h("tr", null, mark && h("th", { class: "sign", scope: "col" }, h("span", { class: "hidden" }, "change")), columns.map(headCell)));
  return h("div", null, h("div", { class: "scroll", tabIndex: 0, role: "region", ariaLabel: "Rows" }, h("table", null, head, body)), h("div", { class: "bar" }, button));
}

export const headCell = (column) => h("th", { class: isNumber(column) ? "r" : null, scope: "col" }, column.name);

const SIGNS = { plus: "+", minus: "−" };

export function tableRow(columns, row, mark = null, signed = false) {
  const cells = row.map((value, at) => h("td", {
    class: value === null ? "null" : isNumber(columns[at]) ? "r" : null,
  }, text(value)));
  return h("tr", { class: mark }, signed && h("td", { class: "sign" }, SIGNS[mark]), cells);
}

/** The order of rows for people: numbers by size, words by letter. */
export const inOrder = (a, b) => a.localeCompare(b, "en", { numeric: true });

/** A small table of words, with what is given as it is. */
export const listing = (titles, lines) => h("div", { class: "scroll", tabIndex: 0, role: "region", ariaLabel: titles.join(", ") },
  h("table", null, h("thead", null, h("tr", null, titles.map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", null, lines.map((line) => h("tr", null, line.map((cell) => h("td", null, cell)))))));

export function failure(told) {
  const rest = [told.detail, told.hint && `Hint: ${told.hint}`].filter(Boolean).join("\n");
  return h("div", { class: "error", role: "alert" }, h("strong", null, told.message),
    told.code && h("span", { class: "muted" }, ` (${told.code})`), rest && h("pre", null, rest));
}

export function say(message) {
  const toast = document.getElementById("toast");
  toast.textContent = message;
  toast.hidden = false;
  setTimeout(() => { toast.hidden = true; }, 6000);
}

const STATES = {
  running: "good", ok: "good", ready: "good", hydrating: "warn", starting: "warn", stalled: "bad",
  errored: "bad", failed: "bad", paused: "warn", created: "warn",
};
export const badge = (state) => h("span", { class: `badge ${STATES[state] || ""}` }, state);

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${Number(number) === 1 ? one : many}`;
export const count = (number) => Number(number).toLocaleString("en");
export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let left = Number(number);
  let unit = 0;
  while (left >= 1024 && unit < 4) { left /= 1024; unit += 1; }
  return `${unit ? left.toFixed(1) : left} ${units[unit]}`;
}
export function short(number) {
  const size = Math.abs(number);
  if (size >= 1e9) return `${(number / 1e9).toFixed(1)}G`;
  if (size >= 1e6) return `${(number / 1e6).toFixed(1)}M`;
  if (size >= 1e4) return `${(number / 1e3).toFixed(1)}k`;
  return Number.isInteger(number) ? String(number) : number.toPrecision(3);
}
export function span(ms) {
  if (ms === null || Number.isNaN(ms)) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  return `${Math.round(ms / 3_600_000)} h`;
}
export const clock = (ms) => new Date(Number(ms)).toISOString().slice(11, 23);
export const day = (ms) => new Date(Number(ms)).toISOString().replace("T", " ").slice(0, 23);

/** Do something now and every `ms`, while the page is seen; one at a time. Returns how to stop. */
export function every(ms, work) {
  let timer = null;
  let over = false;
  const turn = async () => {
    if (!document.hidden) {
      try {
        await work();
      } catch (error) {
        if (!over) console.info(error.message);
      }
    }
    if (!over) timer = setTimeout(turn, ms);
  };
  turn();
  return () => { over = true; clearTimeout(timer); };
}
