// Charts as SVG: lines, bars, marks on a line of time. The theme's colours, no library.

import { s, h, short, clock } from "/console/dom.js";

const HEIGHT = 260;
/** So wide is the label of a time or a name on the axis, in pixels. */
const LABEL = 84;
const LEFT = 56;
const BOTTOM = 30;

function scale(low, high, from, to) {
  const range = high - low || 1;
  return (value) => from + ((value - low) / range) * (to - from);
}

function steps(low, high, parts = 4) {
  const raw = (high - low || 1) / parts;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= raw);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) found.push(at);
  return found;
}

/** What is drawn for the width that it has, and again when that changes: its letters keep their size. */
function fitted(draw) {
  const frame = h("div", { class: "fitted" });
  let drawn = 0;
  new ResizeObserver(([seen]) => {
    const width = Math.round(seen.contentRect.width);
    if (width && Math.abs(width - drawn) > 1) {
      drawn = width;
      frame.replaceChildren(draw(width));
    }
  }).observe(frame);
  return frame;
}

/** Series {name, values} over labels; lines for an ordered axis, bars otherwise; `at` are marks, as shares of the axis. */
export function chart(labels, series, { bars = false, at = [] } = {}) {
  const legend = h("div", { class: "legend" }, series.map((each, place) => h("span", null,
    h("span", { class: `swatch s${(place % 4) + 1}` }), each.name)));
  return h("div", null, fitted((width) => plot(labels, series, { bars, at, width })), legend);
}

function plot(labels, series, { bars, at: marked, width: WIDTH }) {
  const all = series.flatMap((each) => each.values).filter((value) => value !== null);
  const low = Math.min(0, ...all);
  const high = Math.max(...all, low + 1e-9);
  const y = scale(low, high, HEIGHT - BOTTOM, 10);
  const x = scale(0, Math.max(1, labels.length - (bars ? 0 : 1)), LEFT, WIDTH - 10);
  const lines = steps(low, high).map((value) => [
    s("line", { class: "grid", x1: LEFT, x2: WIDTH - 10, y1: y(value), y2: y(value) }),
    s("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)),
  ]);
  const every = Math.max(1, Math.ceil(labels.length / Math.max(1, Math.floor((WIDTH - LEFT) / LABEL))));
  const anchor = (at) => (bars || (x(at) > LEFT + LABEL / 2 && x(at) < WIDTH - LABEL / 2) ? "middle" : at === 0 ? "start" : "end");
  const names = labels.map((label, at) => at % every === 0 && s("text", {
    x: x(at + (bars ? 0.5 : 0)), y: HEIGHT - 10, "text-anchor": anchor(at),
  }, String(label).length > 12 ? `${String(label).slice(0, 11)}…` : String(label)));
  const signs = marked.map((share) => {
    const place = LEFT + share * (WIDTH - 10 - LEFT);
    return s("line", { class: "mark", x1: place, x2: place, y1: 4, y2: HEIGHT - BOTTOM });
  });
  const marks = series.map((each, at) => (bars
    ? each.values.map((value, place) => value !== null && barOf(x, y, value, place, at, series.length))
    : s("path", { class: `s${(at % 4) + 1}`, d: lineOf(x, y, each.values) })));
  return s("svg", {
    class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `Chart of ${series.map((each) => each.name).join(", ")}`,
  }, lines, names, marks, signs);
}

function lineOf(x, y, values) {
  return values.map((value, at) => (value === null ? "" : `${at && values[at - 1] !== null ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`)).join("");
}

function barOf(x, y, value, place, at, of) {
  const width = (x(1) - x(0)) * 0.8;
  const top = Math.min(y(value), y(0));
  return s("rect", {
    class: `s${(at % 4) + 1}`, x: x(place) + width * 0.125 + (width / of) * at, width: Math.max(1, width / of),
    y: top, height: Math.max(1, Math.abs(y(value) - y(0))),
  });
}

/** Durations side by side, each with what it says when pointed at. A tick of a second and one of a
 * millisecond are both to be seen: every line is ten times the one below it. */
export function spark(values, { titles = [], failed = [], height = 64, label = "" } = {}) {
  const top = Math.max(2, Math.ceil(Math.log10(Math.max(...values, 1))));
  const tall = (value) => Math.max(2, (Math.log10(Math.max(value, 1)) / top) * (height - 10));
  const wide = 320 - LEFT;
  const width = Math.max(2, Math.min(8, wide / Math.max(1, values.length)));
  const bars = values.map((value, at) => s("rect", {
    class: failed[at] ? "failed" : "s1", x: LEFT + at * width, width: width * 0.8, y: height - tall(value), height: tall(value),
  }, s("title", null, titles[at] || short(value))));
  const lines = Array.from({ length: top }, (_, at) => at + 1).filter((power) => power > top - 3).map((power) => [
    s("line", { class: "grid", x1: LEFT, x2: 320, y1: height - tall(10 ** power), y2: height - tall(10 ** power) }),
    s("text", { x: LEFT - 6, y: height - tall(10 ** power) + 4, "text-anchor": "end" }, power < 3 ? `${10 ** power} ms` : `${short(10 ** (power - 3))} s`),
  ]);
  return s("svg", { viewBox: `0 0 320 ${height}`, width: "100%", height, preserveAspectRatio: "xMinYMax meet", role: "img", "aria-label": label }, values.length ? lines : null, bars);
}

/** Spans on one line of time: {name, from, to, marks: [{at, name}]}, in milliseconds. */
export function timeline(spans, chosen = null) {
  return fitted((width) => spansOf(spans, chosen, width));
}

function spansOf(spans, chosen, WIDTH) {
  const all = spans.flatMap((each) => [each.from, each.to]).concat(chosen ?? []).filter(Number.isFinite);
  const low = Math.min(...all);
  const high = Math.max(...all);
  const pad = (high - low || 1000) * 0.06;
  const names = Math.min(170, WIDTH * 0.26);
  const x = scale(low - pad, high + pad, names, WIDTH - 20);
  const tall = 44 * spans.length + 46;
  const rows = spans.map((each, at) => {
    const y = 30 + 44 * at;
    return [
      s("text", { class: "strong", x: names - 10, y: y + 5, "text-anchor": "end" }, s("title", null, each.name), each.name.slice(0, Math.floor(names / 7))),
      s("rect", { class: "s2", x: x(each.from), width: Math.max(3, x(each.to) - x(each.from)), y: y - 7, height: 14, rx: 3, opacity: 0.55 }),
      s("text", { x: x(each.from), y: y + 21 }, `since ${clock(each.from)}`),
      s("text", { x: x(each.to), y: y - 11, "text-anchor": "end" }, `upper ${clock(each.to)}`),
    ];
  });
  const line = chosen === null ? [] : [
    s("path", { class: "s1", d: `M${x(chosen)} 12V${tall - 20}` }),
    s("text", { class: "strong", x: x(chosen), y: tall - 5, "text-anchor": x(chosen) > WIDTH - 120 ? "end" : x(chosen) < 120 ? "start" : "middle" }, `answered as of ${clock(chosen)}`),
  ];
  return s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${tall}`, role: "img", "aria-label": "Since, upper and the chosen time of every input" }, rows, line);
}
