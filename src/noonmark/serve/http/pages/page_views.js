// Views: how long their ticks take, what they do, which one is slow or failing; AUDIT by a button.

import { glance, request } from "/console/api.js";
import { spark } from "/console/chart.js";
import { badge, clock, count, every, failure, h, plural, span, table } from "/console/dom.js";

export const title = "Views";
const TICKS = 80;
/** A view that is further behind than this is counted as behind. */
const BEHIND_MS = 10_000;

/** The views with their last ticks. `known` keeps ticks by view: only newer ones are asked for. */
async function look(known) {
  const [views, ticks, lags] = await Promise.all([
    glance(`SELECT v.id, v.name, s.name AS schema, t.status, t.error, t.hint FROM mz_catalog.mz_materialized_views v
            JOIN mz_catalog.mz_schemas s ON s.id = v.schema_id LEFT JOIN noonmark.view_statuses t ON t.id = v.id ORDER BY v.id`),
    glance("SELECT view, upper, rows_in, rows_out, errors, jobs, ms, strategy FROM noonmark.ticks WHERE upper > $1 ORDER BY upper", [String(known.upper)]),
    glance("SELECT id, lag_ms FROM noonmark.frontiers WHERE kind = 'materialized-view'"),
  ]);
  const behind = new Map(lags.map((each) => [each.id, each.lag_ms === null ? null : Number(each.lag_ms)]));
  for (const tick of ticks) {
    known.of.set(tick.view, [...(known.of.get(tick.view) || []), tick].slice(-TICKS));
    known.upper = Math.max(known.upper, Number(tick.upper));
  }
  return views.map((each) => {
    const own = known.of.get(each.name) || [];
    const sorted = own.map((tick) => Number(tick.ms)).sort((a, b) => a - b);
    const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? null;
    return { ...each, ticks: own, p50: at(0.5), p99: at(0.99), lag: behind.get(each.id) ?? null };
  });
}

const worst = (each) => (each.error ? 1e12 : 0) + (each.lag || 0) + (each.p99 || 0);

async function audit(full, place) {
  place.replaceChildren(h("p", { class: "muted" }, "computing the view again from its inputs …"));
  const [result] = await request({ query: `AUDIT MATERIALIZED VIEW ${full}` });
  if (result.error) return place.replaceChildren(failure(result.error));
  const notices = (result.notices || []).map((each) => h("p", { class: "muted" }, each.message));
  if (!result.rows.length) return place.replaceChildren(h("p", null, badge("ok"), " The stored rows are what the definition gives: no row differs."), ...notices);
  return place.replaceChildren(h("p", { class: "error" }, `${count(result.rows.length)} rows differ`), table(result.desc.columns, result.rows), ...notices);
}

export function mount(root, [only]) {
  const list = h("div", { class: "cards" }, h("p", { class: "empty" }, "Reading the views …"));
  const sum = h("p", { class: "sum", role: "status" });
  const audits = new Map();
  const known = { of: new Map(), upper: 0 };
  const field = h("input", { type: "search", placeholder: "filter by name", ariaLabel: "Filter by name", value: only || "", oninput: () => refresh() });

  function card(each) {
    const full = `"${each.schema.replaceAll('"', '""')}"."${each.name.replaceAll('"', '""')}"`;
    const place = audits.get(each.id) || h("div", { role: "status" });
    audits.set(each.id, place);
    const last = each.ticks.at(-1);
    const titles = each.ticks.map((tick) => `${clock(tick.upper)}: ${span(Number(tick.ms))}, ${tick.rows_in} in, ${tick.rows_out} out, ${plural(tick.jobs, "Spark job")}, ${tick.strategy}`);
    return h("section", { class: each.error ? "panel failing" : "panel" },
      h("h2", null, each.name, " ", badge(each.status || "starting")),
      each.error && failure({ message: each.error, hint: each.hint }),
      last && spark(each.ticks.map((tick) => Number(tick.ms)), { titles, failed: each.ticks.map((tick) => Number(tick.errors) > 0), label: `Durations of the last ticks of ${each.name}` }),
      h("p", { class: "muted" }, last
        ? `ticks: median ${span(each.p50)}, slowest ${span(each.p99)} · ${span(each.lag)} behind · last: ${count(last.rows_in)} rows in, ${count(last.rows_out)} out, ${plural(last.jobs, "Spark job")}, ${last.strategy}`
        : each.status === "hydrating" ? "computing its first contents" : "no tick since the server started"),
      h("div", { class: "bar" },
        h("button", { type: "button", onclick: () => audit(full, place) }, "Audit"),
        h("a", { href: `#/sql/${encodeURIComponent(`EXPLAIN MATERIALIZED VIEW ${full};`)}` }, "How it is maintained"),
        h("a", { href: `#/live/${encodeURIComponent(full)}` }, "Live")),
      place);
  }

  async function refresh() {
    const wanted = field.value.toLowerCase();
    const found = (await look(known)).filter((each) => each.name.toLowerCase().includes(wanted)).sort((a, b) => worst(b) - worst(a));
    const failing = found.filter((each) => each.error).length;
    const hydrating = found.filter((each) => each.status === "hydrating").length;
    const behind = found.filter((each) => !each.error && each.status !== "hydrating" && each.lag > BEHIND_MS).length;
    const parts = [plural(found.length, "view"), failing && h("strong", { class: "bad" }, `${failing} failing`), behind && h("strong", { class: "warn" }, `${behind} behind`), hydrating > 0 && `${hydrating} hydrating`, !failing && !behind && !hydrating && found.length > 0 && h("span", { class: "good" }, "all in order")];
    sum.replaceChildren(...parts.filter(Boolean).flatMap((each, at) => (at ? [" · ", each] : [each])));
    list.replaceChildren(...found.map(card));
    if (!found.length) list.append(h("p", { class: "empty" }, wanted ? "There are no materialized views of that name." : "There are no materialized views. CREATE MATERIALIZED VIEW makes one."));
  }

  root.append(h("h1", null, "Views"), h("div", { class: "bar" }, field, h("span", { class: "muted" }, "failing and slow ones first"), h("span", { class: "grow" }), sum), list);
  return every(2000, refresh);
}
