// Places for the nodes of an acyclic graph: a layer is the longest way from a root; within a layer
// nodes stand near the middle of what they stand on, which keeps crossings few.

/** Nodes {id} and edges [from, to]; gives {places: id -> {layer, at}, layers: [[id]]}. */
export function layout(nodes, edges) {
  const ids = new Set(nodes.map((each) => each.id));
  const below = new Map(nodes.map((each) => [each.id, []]));
  const above = new Map(nodes.map((each) => [each.id, []]));
  for (const [from, to] of edges) {
    if (ids.has(from) && ids.has(to)) {
      below.get(to).push(from);
      above.get(from).push(to);
    }
  }
  const layer = new Map();
  const depth = (id, path = new Set()) => {
    if (layer.has(id)) return layer.get(id);
    if (path.has(id)) return 0;
    const deeper = new Set(path).add(id);
    const found = below.get(id).length ? 1 + Math.max(...below.get(id).map((each) => depth(each, deeper))) : 0;
    layer.set(id, found);
    return found;
  };
  nodes.forEach((each) => depth(each.id));
  const layers = [];
  for (const each of nodes) (layers[layer.get(each.id)] ||= []).push(each.id);
  const at = new Map();
  const settle = (row) => row.forEach((id, place) => at.set(id, place));
  layers.forEach(settle);
  const middle = (near) => (id) => {
    const found = near.get(id).map((each) => at.get(each));
    return found.length ? found.reduce((sum, each) => sum + each, 0) / found.length : at.get(id);
  };
  const sorted = (row, near) => {
    const weight = new Map(row.map((id) => [id, middle(near)(id)]));
    row.sort((a, b) => weight.get(a) - weight.get(b));
    settle(row);
  };
  for (let sweep = 0; sweep < 4; sweep += 1) {
    layers.slice(1).forEach((row) => sorted(row, below));
    layers.slice(0, -1).reverse().forEach((row) => sorted(row, above));
  }
  const places = new Map(nodes.map((each) => [each.id, { layer: layer.get(each.id), at: at.get(each.id) }]));
  return { places, layers };
}
