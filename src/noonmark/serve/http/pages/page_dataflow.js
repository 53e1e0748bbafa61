// Dataflow: what stands on what, live; a click shows how a node is kept.

import { glance, quoted, rows } from "/console/api.js";
import { spark } from "/console/chart.js";
import { dependencies, objects } from "/console/catalog.js";
import { badge, bytes, clock, count, day, every, failure, h, listing, plural, s, short, span } from "/console/dom.js";
import { layout } from "/console/layout.js";

export const title = "Dataflow";
/** Rates are of the ticks of so long. */
const LATELY_MS = 30_000;
const WIDE = 190;
const TALL = 58;
const GAP_X = 80;
const GAP_Y = 20;
/** What is further behind than this is marked. */
const BEHIND_MS = 10_000;
/** So many letters of a name fit into a node. */
const LETTERS = 22;
/** A graph is drawn smaller to fit, but not so small, and larger on a wall, but not so large. */
const SMALLEST = 0.6;
const LARGEST = 1.7;
/** What views keep besides their rows, and who holds it: shown with bindings and bad records. */
const ARRANGEMENTS = `
  SELECT s.id, s.name, s.since, s.upper, s.rows, split_part(c.id, '/', 2) AS view
  FROM noonmark.shards s JOIN noonmark.capabilities c ON c.collection = s.name
  WHERE s.name LIKE 'arrangement_%' AND c.id LIKE 'view/%'`;
const KINDS = new Set(["source", "subsource", "progress", "errors", "table", "view", "materialized-view", "index", "sink", "webhook"]);

async function look(all) {
  const [found, edges, ticks, statuses, views, sinks, statistics, kept] = await Promise.all([
    objects(), dependencies(),
    glance("SELECT view, sum(rows_in) AS rows_in, max(upper) - min(lower) AS ms FROM noonmark.ticks WHERE upper > $1 GROUP BY view", [String(Date.now() - LATELY_MS)]),
    glance("SELECT id, status, error FROM mz_internal.mz_source_statuses"),
    glance("SELECT id, status, error FROM noonmark.view_statuses"),
    glance("SELECT id, status, error FROM mz_internal.mz_sink_statuses"),
    glance("SELECT id, messages_per_second FROM mz_internal.mz_source_statistics"),
    all ? glance(ARRANGEMENTS) : [],
  ]);
  const state = new Map([...statuses, ...views, ...sinks].map((each) => [each.id, each]));
  const rate = new Map(statistics.map((each) => [each.id, Number(each.messages_per_second)]));
  const ticked = new Map(ticks.map((each) => [each.view, 1000 * Number(each.rows_in) / Math.max(1, Number(each.ms))]));
  const now = Date.now();
  const nodes = found
    .filter((each) => KINDS.has(each.kind) && (all || !["progress", "errors"].includes(each.kind)))
    .map((each) => ({
      ...each, status: state.get(each.id)?.status, error: state.get(each.id)?.error,
      // A table is complete up to its last write by definition: it is never behind.
      lag: each.kind === "table" ? null : each.lag,
      rate: rate.get(each.id) ?? ticked.get(each.name) ?? null,
    }));
  const named = new Map(found.map((each) => [each.name, each.id]));
  const arrangements = new Map(kept.map((each) => [each.id, {
    id: each.id, name: each.name.slice(0, 20), full: quoted(each.name), kind: "arrangement", since: Number(each.since),
    upper: Number(each.upper), lag: Math.max(0, now - Number(each.upper)), rate: null,
  }]));
  return {
    nodes: [...nodes, ...arrangements.values()],
    edges: [
      ...edges.map((each) => [each.referenced_object_id, each.object_id]),
      ...kept.filter((each) => named.has(each.view)).map((each) => [named.get(each.view), each.id]),
    ],
  };
}

function draw({ nodes, edges }, chosen, choose, room) {
  const { places, layers } = layout(nodes, edges);
  const most = Math.max(1, ...layers.map((row) => row.length));
  const spot = (id) => {
    const { layer, at } = places.get(id);
    const shift = ((most - layers[layer].length) * (TALL + GAP_Y)) / 2;
    return { x: 10 + layer * (WIDE + GAP_X), y: 10 + shift + at * (TALL + GAP_Y) };
  };
  const lines = edges.filter(([from, to]) => places.has(from) && places.has(to)).map(([from, to]) => {
    const a = spot(from);
    const b = spot(to);
    const moves = [from, to].some((id) => nodes.find((each) => each.id === id).rate > 0);
    const [x1, y1, x2, y2] = [a.x + WIDE, a.y + TALL / 2, b.x, b.y + TALL / 2];
    return s("path", { class: `edge${moves ? " live" : ""}`, d: `M${x1} ${y1}C${x1 + GAP_X / 2} ${y1} ${x2 - GAP_X / 2} ${y2} ${x2} ${y2}` });
  });
  const boxes = nodes.map((each) => {
    const { x, y } = spot(each.id);
    const hydrates = each.status === "hydrating";
    const mood = each.error ? " bad" : !hydrates && each.lag > BEHIND_MS && each.kind !== "index" ? " warn" : "";
    const facts = hydrates ? "computing its first contents" : [each.lag !== null && `${span(each.lag)} behind`, each.rate > 0 && `${short(Math.round(each.rate))} rows/s`].filter(Boolean).join(" · ");
    const act = () => choose(each.id);
    return s("g", {
      class: `node ${each.kind}${mood}${each.id === chosen ? " chosen" : ""}`, transform: `translate(${x} ${y})`, tabindex: 0, role: "button",
      "aria-label": `${each.kind} ${each.name} ${each.error || facts}`, onclick: act,
      onkeydown: (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), act()),
    },
    s("rect", { width: WIDE, height: TALL, rx: 8 }),
    s("rect", { class: "tab", width: 4, height: TALL - 16, x: 0, y: 8, rx: 2 }),
    s("text", { class: "kind", x: 14, y: 16 }, each.kind.replace("-", " ")),
    mood && s("text", { class: "sign", x: WIDE - 10, y: 17, "text-anchor": "end" }, mood === " bad" ? "✕ failing" : "! behind"),
    s("text", { class: "strong", x: 14, y: 33 }, s("title", null, each.name), each.name.length > LETTERS ? `${each.name.slice(0, LETTERS - 1)}…` : each.name),
    s("text", { x: 14, y: 49 }, each.error ? "click to see why" : facts));
  });
  const width = 20 + layers.length * (WIDE + GAP_X) - GAP_X;
  const height = 20 + most * (TALL + GAP_Y) - GAP_Y;
  const size = Math.min(LARGEST, Math.max(SMALLEST, room / width));
  const shown = size === SMALLEST ? 1 : size;
  return s("svg", { viewBox: `0 0 ${width} ${height}`, width: width * shown, height: height * shown, role: "group", "aria-label": "Dataflow" }, lines, boxes);
}

async function about(node) {
  const verb = { "materialized-view": "MATERIALIZED VIEW", view: "VIEW", table: "TABLE", source: "SOURCE", sink: "SINK", index: "INDEX" }[node.kind];
  const soft = (work) => work.catch(() => []);
  const [made, plan, ticks, shard, fields] = await Promise.all([
    verb ? soft(rows(`SHOW CREATE ${verb} ${node.full}`)) : [],
    node.kind === "materialized-view" ? soft(rows(`EXPLAIN MATERIALIZED VIEW ${node.full}`)) : [],
    soft(glance("SELECT upper, rows_in, rows_out, jobs, ms, strategy, errors FROM noonmark.ticks WHERE view = $1 ORDER BY upper DESC LIMIT 60", [node.name])),
    soft(glance("SELECT batches, parts, rows, bytes FROM noonmark.shards WHERE item_id = $1 OR id = $1", [node.id])),
    soft(glance("SELECT name, type, nullable FROM mz_catalog.mz_columns WHERE id = $1 ORDER BY position", [node.id])),
  ]);
  const past = [...ticks].reverse();
  const text = made.length ? Object.values(made[0]).at(-1) : null;
  return [
    h("h2", null, node.name, " ", badge(node.status || node.kind)),
    node.error && failure({ message: node.error }),
    h("dl", null,
      node.since !== null && [h("dt", null, "readable from"), h("dd", null, day(node.since))],
      node.upper !== null && [h("dt", null, "complete before"), h("dd", null, day(node.upper))],
      shard[0] && [h("dt", null, "stored"), h("dd", null, `${plural(shard[0].rows, "update")}, ${bytes(shard[0].bytes)}, ${plural(shard[0].batches, "batch", "batches")}`)]),
    past.length > 0 && [
      h("h3", null, "Last ticks, by duration"),
      spark(past.map((each) => Number(each.ms)), { label: `Duration of the last ticks of ${node.name}`, failed: past.map((each) => Number(each.errors) > 0), titles: past.map((each) => `${clock(each.upper)}: ${span(Number(each.ms))}, ${each.rows_in} in, ${each.rows_out} out, ${plural(each.jobs, "Spark job")}, ${each.strategy}`) }),
      h("p", { class: "muted" }, `last: ${span(Number(ticks[0].ms))}, ${count(ticks[0].rows_in)} in, ${count(ticks[0].rows_out)} out, ${plural(ticks[0].jobs, "Spark job")}, ${ticks[0].strategy}`)],
    plan.length > 0 && [h("h3", null, "How it is maintained"), h("pre", { class: "plan", tabIndex: 0 }, plan.map((row) => row["QUERY PLAN"]).join("\n"))],
    text && [h("h3", null, "Definition"), h("pre", { class: "plan", tabIndex: 0 }, text)],
    fields.length > 0 && [h("h3", null, "Columns"), listing(["name", "type", "NULL"], fields.map((each) => [each.name, each.type, each.nullable ? "yes" : "no"]))],
    node.upper !== null && node.kind !== "arrangement" && h("p", null, h("a", { href: `#/live/${encodeURIComponent(node.full)}` }, "Watch it live"), " · ", h("a", { href: `#/time/${encodeURIComponent(node.full)}` }, "Look back in time"), " · ", h("a", { href: `#/sql/${encodeURIComponent(`SELECT * FROM ${node.full} LIMIT 100;`)}` }, "Query it")),
  ];
}

export function mount(root) {
  let chosen = null;
  let known = { nodes: [], edges: [] };
  let shape = "";
  const picture = h("div", { class: "scroll graph", tabIndex: 0, role: "region", ariaLabel: "Graph" }, h("p", { class: "empty" }, "Reading the catalog …"));
  const side = h("aside", { class: "panel", ariaLabel: "Chosen node" }, h("p", { class: "muted" }, "Click a node, or press Enter on it, to see what it stores and how it is maintained."));
  const all = h("input", { type: "checkbox", onchange: () => refresh() });

  async function choose(id) {
    chosen = id;
    paint();
    const node = known.nodes.find((each) => each.id === id);
    side.replaceChildren(h("p", { class: "muted" }, "…"));
    const found = await about(node);
    if (chosen === id) side.replaceChildren(...found.flat(Infinity).filter(Boolean));
  }

  function paint() {
    const focused = document.activeElement?.closest?.(".node")?.getAttribute("aria-label")?.split(" ").slice(0, 2).join(" ");
    const empty = h("p", { class: "empty" }, "There is nothing yet. Create a source, a table or a view on the SQL page.");
    const { scrollLeft, scrollTop } = picture;
    picture.replaceChildren(known.nodes.length ? draw(known, chosen, choose, picture.clientWidth) : empty);
    Object.assign(picture, { scrollLeft, scrollTop });
    if (focused) [...picture.querySelectorAll(".node")].find((each) => each.getAttribute("aria-label").startsWith(focused))?.focus();
  }

  async function refresh() {
    known = await look(all.checked);
    const next = JSON.stringify(known, (key, value) => (key === "upper" || key === "since" ? undefined : value));
    if (next !== shape) { shape = next; paint(); }
  }

  root.append(h("h1", null, "Dataflow"),
    h("div", { class: "bar" }, h("label", null, all, " show bindings, bad records and arrangements"), h("span", { class: "grow" }), h("span", { class: "muted" }, "refreshed every second")),
    h("div", { class: "split" }, picture, side));
  return every(1000, refresh);
}

