// Sources and sinks: how each is doing, how far it is, what it could not read.

import { glance, quoted, rows } from "/console/api.js";
import { objects } from "/console/catalog.js";
import { badge, bytes, clock, count, every, failure, h, listing, short, span, table } from "/console/dom.js";

export const title = "Sources";
const KEPT = 50;

async function look() {
  const [statuses, statistics, sinks, written, found] = await Promise.all([
    glance("SELECT * FROM mz_internal.mz_source_statuses"),
    glance("SELECT * FROM mz_internal.mz_source_statistics"),
    glance("SELECT * FROM mz_internal.mz_sink_statuses"),
    glance("SELECT * FROM mz_internal.mz_sink_statistics"),
    objects(),
  ]);
  return { statuses, found, sinks, figures: new Map([...statistics, ...written].map((each) => [each.id, each])) };
}

function source(each, figures, parts) {
  const has = figures.get(each.id);
  const fact = (name, value) => value !== null && value !== undefined && [h("dt", null, name), h("dd", null, value)];
  return [
    h("h2", null, each.name, " ", badge(each.status), " ", h("span", { class: "muted" }, each.type)),
    each.error && failure({ message: each.error }),
    each.notice && h("p", { class: "muted" }, each.notice),
    has && h("dl", null,
      fact("lag", has.lag_seconds === null ? null : span(1000 * Number(has.lag_seconds))),
      fact("received", has.messages_received && `${count(has.messages_received)} records, ${bytes(has.bytes_received)}`),
      fact("rate", has.messages_per_second && `${short(Number(has.messages_per_second))} records/s`),
      fact("offset", has.offset_known && `${count(has.offset_committed)} durable of ${count(has.offset_known)} known`),
      fact("written", has.messages_committed && `${count(has.messages_committed)} records`),
      fact("up to", has.frontier && clock(has.frontier)),
      fact(`${each.status} since`, each.last_status_change_at?.slice(0, 19))),
    parts.length > 0 && listing(["table", "status", "why"], parts.map((part) => [part.name, badge(part.status), part.error || part.notice || ""])),
  ];
}

/** Bytes as SQL writes them, and what they say where they are text. */
function bytesAndText(value) {
  if (typeof value !== "string" || !/^\\x(?:[0-9a-f]{2})+$/.test(value)) return value;
  const raw = Uint8Array.from(value.slice(2).match(/../g), (pair) => parseInt(pair, 16));
  try {
    return `${new TextDecoder("utf-8", { fatal: true }).decode(raw)}  ·  ${value}`;
  } catch {
    return value;
  }
}

async function detail(name, schema, root) {
  const full = (suffix) => `${quoted(schema)}.${quoted(`${name}_${suffix}`)}`;
  const ask = async (suffix, order) => {
    try {
      return await rows(`SELECT * FROM ${full(suffix)} ${order} LIMIT ${KEPT}`);
    } catch (error) {
      return error.told || { message: error.message };
    }
  };
  const [bad, bindings] = await Promise.all([ask("errors", ""), ask("remap", "ORDER BY 1 DESC")]);
  const shown = (found, none) => {
    if (!Array.isArray(found)) return failure(found);
    if (!found.length) return h("p", { class: "muted" }, none);
    const names = Object.keys(found[0]).map((each) => ({ name: each, type_oid: 25 }));
    return table(names, found.map((row) => Object.values(row).map(bytesAndText)));
  };
  root.replaceChildren(
    h("h3", null, "Records that cannot be decoded"), shown(bad, "None."),
    Array.isArray(bad) && bad.length > 0 && h("p", { class: "muted" }, "They stay here, with their bytes, until upstream replaces or deletes them; views over the source continue without them. Fix the producer and send the record again: under UPSERT the next record of the same key ends the error."),
    h("h3", null, "Bindings: how far the source had been read at each time"), shown(bindings, "None yet."));
}

export function mount(root) {
  const list = h("div", { class: "cards" }, h("p", { class: "empty" }, "Reading the sources …"));
  const open = new Map();

  async function refresh() {
    const { statuses, sinks, figures, found } = await look();
    const parents = statuses.filter((each) => each.type !== "subsource");
    const schemas = new Map(found.map((each) => [each.id, each.schema]));
    let at = -1;
    const ranges = parents.map((each) => statuses.indexOf(each)).concat(statuses.length);
    const cards = parents.map((each) => {
      at += 1;
      const parts = statuses.slice(ranges[at] + 1, ranges[at + 1]);
      const more = open.get(each.id) || h("div");
      open.set(each.id, more);
      return h("section", { class: "panel" }, source(each, figures, parts),
        h("div", { class: "bar" }, h("button", { type: "button", onclick: () => detail(each.name, schemas.get(each.id), more) }, "Bindings and bad records"), h("a", { href: `#/live/${encodeURIComponent(`${quoted(schemas.get(each.id) || "public")}.${quoted(parts[0]?.name || each.name)}`)}` }, "Live")), more);
    });
    const outs = sinks.map((each) => h("section", { class: "panel" }, source(each, figures, [])));
    list.replaceChildren(...cards, ...outs);
    if (!cards.length && !outs.length) list.append(h("p", { class: "empty" }, "There are no sources or sinks. CREATE SOURCE c FROM LOAD GENERATOR COUNTER makes the smallest one."));
  }

  root.append(h("h1", null, "Sources and sinks"), list);
  return every(2000, refresh);
}
