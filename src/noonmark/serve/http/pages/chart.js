// Charts as SVG: lines, bars, marks on a line of time. The theme's colours, no library.

import { s, h, short, clock } from "/console/dom.js";

const WIDTH = 860;
const HEIGHT = 260;
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

/** Series {name, values} over labels; lines for an ordered axis, bars otherwise. */
export function chart(labels, series, { bars = false } = {}) {
  const all = series.flatMap((each) => each.values).filter((value) => value !== null);
  const low = Math.min(0, ...all);
  const high = Math.max(...all, low + 1e-9);
  const y = scale(low, high, HEIGHT - BOTTOM, 10);
  const x = scale(0, Math.max(1, labels.length - (bars ? 0 : 1)), LEFT, WIDTH - 10);
  const lines = steps(low, high).map((value) => [
    s("line", { class: "grid", x1: LEFT, x2: WIDTH - 10, y1: y(value), y2: y(value) }),
    s("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)),
  ]);
  const every = Math.max(1, Math.ceil(labels.length / 8));
  const anchor = (at) => (bars || (at > 0 && x(at) < WIDTH - 60) ? "middle" : at === 0 ? "start" : "end");
  const names = labels.map((label, at) => at % every === 0 && s("text", {
    x: x(at + (bars ? 0.5 : 0)), y: HEIGHT - 10, "text-anchor": anchor(at),
  }, String(label).slice(0, 16)));
  const marks = series.map((each, at) => (bars
    ? each.values.map((value, place) => value !== null && barOf(x, y, value, place, at, series.length))
    : s("path", { class: `s${(at % 4) + 1}`, d: lineOf(x, y, each.values) })));
  const picture = s("svg", {
    class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `Chart of ${series.map((each) => each.name).join(", ")}`,
  }, lines, names, marks);
  const legend = h("div", { class: "legend" }, series.map((each, at) => h("span", null,
    h("span", { class: `swatch s${(at % 4) + 1}` }), each.name)));
  return h("div", null, picture, legend);
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

/** Small bars side by side, each with what it says when pointed at. */
export function spark(values, { titles = [], failed = [], height = 44, label = "" } = {}) {
  const high = Math.max(...values, 1e-9);
  const width = Math.max(2, Math.min(8, 320 / Math.max(1, values.length)));
  const bars = values.map((value, at) => s("rect", {
    class: failed[at] ? "failed" : "s1", x: at * width, width: width * 0.8,
    y: height - Math.max(1, (value / high) * (height - 4)), height: Math.max(1, (value / high) * (height - 4)),
  }, s("title", null, titles[at] || short(value))));
  return s("svg", { viewBox: `0 0 320 ${height}`, width: "100%", height, preserveAspectRatio: "xMinYMax meet", role: "img", "aria-label": label }, bars);
}

/** Spans on one line of time: {name, from, to, marks: [{at, name}]}, in milliseconds. */
export function timeline(spans, chosen = null) {
  const all = spans.flatMap((each) => [each.from, each.to]).concat(chosen ?? []).filter(Number.isFinite);
  const low = Math.min(...all);
  const high = Math.max(...all);
  const pad = (high - low || 1000) * 0.06;
  const x = scale(low - pad, high + pad, 170, WIDTH - 20);
  const tall = 44 * spans.length + 46;
  const rows = spans.map((each, at) => {
    const y = 30 + 44 * at;
    return [
      s("text", { class: "strong", x: 160, y: y + 5, "text-anchor": "end" }, each.name.slice(0, 24)),
      s("rect", { class: "s2", x: x(each.from), width: Math.max(3, x(each.to) - x(each.from)), y: y - 7, height: 14, rx: 3, opacity: 0.55 }),
      s("text", { x: x(each.from), y: y + 21 }, `since ${clock(each.from)}`),
      s("text", { x: x(each.to), y: y - 11, "text-anchor": "end" }, `upper ${clock(each.to)}`),
    ];
  });
  const line = chosen === null ? [] : [
    s("path", { class: "s1", d: `M${x(chosen)} 12V${tall - 20}` }),
    s("text", { class: "strong", x: x(chosen), y: tall - 5, "text-anchor": x(chosen) > WIDTH - 120 ? "end" : "middle" }, `answered as of ${clock(chosen)}`),
  ];
  return s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${tall}`, role: "img", "aria-label": "Since, upper and the chosen time of every input" }, rows, line);
}
