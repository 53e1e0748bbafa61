// What there is: objects, how they stand on each other, how far each is.

import { glance, quoted } from "/console/api.js";

const OBJECTS = `
  SELECT o.id, o.name, s.name AS schema, o.type, f.since, f.upper, f.lag_ms, f.kind
  FROM mz_catalog.mz_objects o JOIN mz_catalog.mz_schemas s ON s.id = o.schema_id
  LEFT JOIN noonmark.frontiers f ON f.id = o.id
  WHERE o.id LIKE 'u%' ORDER BY o.id`;

/** Every object of users: names spelled as SQL takes them, frontiers in milliseconds. */
export async function objects() {
  const found = await glance(OBJECTS);
  return found.map((each) => ({
    ...each,
    full: (each.schema === "public" ? "" : `${quoted(each.schema)}.`) + quoted(each.name),
    since: each.since === null ? null : Number(each.since),
    upper: each.upper === null ? null : Number(each.upper),
    lag: each.lag_ms === null ? null : Number(each.lag_ms),
    kind: each.kind || each.type,
  }));
}

export const readable = (each) => each.upper !== null || each.since !== null;

export async function dependencies() {
  return glance("SELECT object_id, referenced_object_id FROM mz_internal.mz_object_dependencies");
}

export async function columns() {
  return glance("SELECT id, name, type FROM mz_catalog.mz_columns ORDER BY id, position");
}
