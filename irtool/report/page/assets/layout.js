// Lays out the boxes of one group in ranks from top to bottom (Sugiyama, Tagawa and Toda, 1981):
// rank, order within ranks, coordinates.  Ports are points on the group's edge through which lines
// leave it; they get the first and the last rank.
//
// boxes: [{ w, h, port: 0 | "top" | "bottom" }]; edges: [{ from, to, weight, fromX, toX }] without
// cycles, where fromX and toX say where on the box a line ends, from its middle.
// `most` is the width of a row of parts; without it they are packed into a page.
// Gives { width, height, places: [{ x, y }] (middle of each box), routes: [[[x, y], …]] }.

const GAP_X = 22;
const GAP_Y = 34;
const MOST_IN_RANK = 12;
const WIDE_RANK = 900; // a rank narrower than this stays one
// How strongly lines pull their ends together: where they join boxes of neighbouring ranks, at the
// ends of a longer line, and within it.
const [DIRECT, LOOSE, TRUNK] = [3, 0.4, 4];
const SHELF = 1.5; // width by height that parts without lines between them are packed into

function layoutLevel(boxes, edges, most = 0) {
  const parts = components(boxes, edges);
  const done = parts.map((part) => layoutPart(part, boxes, edges));
  const area = done.reduce((sum, part) => sum + (part.width + GAP_X) * (part.height + GAP_Y), 0);
  const wide = Math.max(...done.map((part) => part.width));
  if (!most) most = Math.max(Math.sqrt(area * SHELF), wide);
  const places = new Array(boxes.length);
  const routes = new Array(edges.length);
  let [x, y, row, width] = [0, 0, 0, 0];
  for (const part of done) {
    if (x > 0 && x + part.width > most) {
      [x, y, row] = [0, y + row + GAP_Y, 0];
    }
    for (const [index, place] of part.places) places[index] = { x: place.x + x, y: place.y + y };
    for (const [index, route] of part.routes) routes[index] = route.map(([px, py]) => [px + x, py + y]);
    x += part.width + GAP_X * 1.5;
    row = Math.max(row, part.height);
    width = Math.max(width, x - GAP_X * 1.5);
  }
  return { width, height: y + row, places, routes };
}

// Boxes that lines join, each part in order.  All that lines from outside lead to are one part: set
// below others they would be reached through them, as ports lie on the group's edge.
function components(boxes, edges) {
  const count = boxes.length;
  const root = Array.from({ length: count }, (_, index) => index);
  const find = (index) => {
    while (root[index] !== index) index = root[index] = root[root[index]];
    return index;
  };
  for (const { from, to } of edges) {
    const [a, b] = [find(from), find(to)];
    root[Math.max(a, b)] = Math.min(a, b);
  }
  let first = -1;
  for (let index = 0; index < count; index++) {
    if (!boxes[index].port) continue;
    const own = find(index);
    first = first < 0 ? own : find(first);
    root[Math.max(own, first)] = Math.min(own, first);
  }
  const parts = new Map();
  for (let index = 0; index < count; index++) {
    const key = find(index);
    if (!parts.has(key)) parts.set(key, []);
    parts.get(key).push(index);
  }
  return [...parts.values()];
}

function layoutPart(part, boxes, edges) {
  const inside = new Map(part.map((index, at) => [index, at]));
  const own = [];
  edges.forEach((edge, index) => {
    if (inside.has(edge.from)) own.push({ ...edge, from: inside.get(edge.from), to: inside.get(edge.to), index });
  });
  const cells = part.map((index) => ({ ...boxes[index], real: true, up: [], down: [] }));
  for (const edge of own) {
    cells[edge.from].down.push(edge);
    cells[edge.to].up.push(edge);
  }
  rankCells(cells);
  widenRanks(cells);
  const chains = breakLongEdges(cells, own);
  const ranks = orderRanks(cells, chains.links);
  placeCells(ranks);
  return finishPart(part, cells, ranks, own, chains.paths);
}

// -- ranks ----------------------------------------------------------------------------------------

// The longest way from a source; then sources, and whatever has more users than inputs, go down to
// just above their users, so that lines are short.
function rankCells(cells) {
  const order = topological(cells);
  for (const at of order) {
    const cell = cells[at];
    cell.rank = cell.port === "top" ? 0 : 1;
    for (const edge of cell.up) cell.rank = Math.max(cell.rank, cells[edge.from].rank + 1);
  }
  const last = Math.max(...cells.map((cell) => cell.rank)) + 1;
  for (const at of order.reverse()) {
    const cell = cells[at];
    if (cell.port === "bottom") cell.rank = last;
    if (cell.port || cell.down.length <= cell.up.length) continue;
    let lowest = Infinity;
    for (const edge of cell.down) {
      if (cells[edge.to].port !== "bottom") lowest = Math.min(lowest, cells[edge.to].rank - 1);
    }
    if (lowest < Infinity) cell.rank = Math.max(cell.rank, lowest);
  }
  pack(cells);
}

function topological(cells) {
  const waiting = cells.map((cell) => cell.up.length);
  const order = [];
  cells.forEach((_, at) => { if (!waiting[at]) order.push(at); });
  for (let next = 0; next < order.length; next++) {
    for (const edge of cells[order[next]].down) if (!--waiting[edge.to]) order.push(edge.to);
  }
  return order;
}

// Ranks without boxes go.
function pack(cells) {
  const used = [...new Set(cells.map((cell) => cell.rank))].sort((a, b) => a - b);
  const number = new Map(used.map((rank, index) => [rank, index]));
  for (const cell of cells) cell.rank = number.get(cell.rank);
}

// A rank of very many or very wide boxes becomes several: what is a mile wide cannot be read.
function widenRanks(cells) {
  const members = [];
  cells.forEach((cell) => (members[cell.rank] ??= []).push(cell));
  let more = 0;
  for (const rank of members) {
    const rows = rank.some((cell) => cell.port) ? 1 : rowsFor(rank);
    const each = Math.ceil(rank.length / rows);
    rank.forEach((cell, index) => { cell.rank += more + Math.floor(index / each); });
    more += Math.ceil(rank.length / each) - 1;
  }
}

function rowsFor(rank) {
  const wide = rank.reduce((sum, cell) => sum + cell.w + GAP_X, 0);
  const area = rank.reduce((sum, cell) => sum + (cell.w + GAP_X) * (cell.h + GAP_Y), 0);
  const most = Math.max(WIDE_RANK, Math.sqrt(area * SHELF) * 1.5);
  return Math.min(rank.length, Math.max(Math.ceil(rank.length / MOST_IN_RANK), Math.ceil(wide / most)));
}

// A line over several ranks gets a narrow cell in each, so that it finds its way between boxes.
// Lines of one value share them: a mask that fifty layers take is one trunk with branches.
function breakLongEdges(cells, edges) {
  const links = [];
  const shared = new Map();
  const cellAt = (key, rank) => {
    const place = `${key}@${rank}`;
    if (!shared.has(place)) {
      shared.set(place, cells.length);
      cells.push({ w: 6, h: 0, rank, real: false, up: [], down: [] });
    }
    return shared.get(place);
  };
  const linked = new Set();
  const link = (from, to, fromX, toX, weight) => {
    const key = `${from} ${to} ${fromX} ${toX}`;
    if (linked.has(key)) return;
    linked.add(key);
    links.push({ from, to, fromX, toX, weight });
  };
  const paths = edges.map((edge) => {
    const key = edge.back ? `${edge.to}:${edge.toX}<` : `${edge.from}:${edge.fromX}>`;
    const path = [];
    let [above, offset] = [edge.from, edge.fromX];
    for (let rank = cells[edge.from].rank + 1; rank < cells[edge.to].rank; rank++) {
      const at = cellAt(key, rank);
      link(above, at, offset, 0, above === edge.from ? LOOSE : TRUNK);
      [above, offset] = [at, 0];
      path.push(at);
    }
    link(above, edge.to, offset, edge.toX, path.length ? LOOSE : edge.weight * DIRECT);
    return path;
  });
  for (const cell of cells) [cell.up, cell.down] = [[], []];
  for (const each of links) {
    cells[each.from].down.push(each);
    cells[each.to].up.push(each);
  }
  return { links, paths };
}

// -- order within ranks -----------------------------------------------------------------------------

function orderRanks(cells, links) {
  const ranks = [];
  cells.forEach((cell, at) => { cell.at = at; (ranks[cell.rank] ??= []).push(cell); });
  ranks.forEach((rank) => rank.forEach((cell, index) => { cell.order = index; }));
  const sweeps = links.length > 4000 ? 4 : links.length > 1500 ? 8 : 16;
  let best = ranks.map((rank) => [...rank]);
  let fewest = crossings(ranks, cells);
  for (let sweep = 0; sweep < sweeps && fewest > 0; sweep++) {
    const down = sweep % 2 === 0;
    for (let step = 1; step < ranks.length; step++) {
      sortRank(ranks[down ? step : ranks.length - 1 - step], down, cells);
    }
    const count = crossings(ranks, cells);
    if (count < fewest) {
      fewest = count;
      best = ranks.map((rank) => [...rank]);
    }
  }
  best.forEach((rank) => rank.forEach((cell, index) => { cell.order = index; }));
  return best;
}

// By the mean place of the neighbours in the rank before; boxes without neighbours stay.
function sortRank(rank, down, cells) {
  for (const cell of rank) {
    const near = down ? cell.up : cell.down;
    let [sum, weight] = [0, 0];
    for (const link of near) {
      const other = cells[down ? link.from : link.to];
      const offset = down ? link.fromX : link.toX;
      sum += (other.order + offset / (other.w + 1)) * link.weight;
      weight += link.weight;
    }
    cell.mean = weight ? sum / weight : null;
  }
  const moving = rank.filter((cell) => cell.mean !== null).sort((a, b) => a.mean - b.mean || a.order - b.order);
  let next = 0;
  for (let index = 0; index < rank.length; index++) {
    if (rank[index].mean !== null) rank[index] = moving[next++];
  }
  rank.forEach((cell, index) => { cell.order = index; });
}

// Crossings between neighbouring ranks, by counting with a binary indexed tree.
function crossings(ranks, cells) {
  let total = 0;
  for (let rank = 0; rank + 1 < ranks.length; rank++) {
    const ends = [];
    for (const cell of ranks[rank]) {
      const own = cell.down.map((link) => [link.fromX, cells[link.to].order + link.toX / (cells[link.to].w + 1)]);
      own.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      for (const [, end] of own) ends.push(end);
    }
    const sorted = [...new Set(ends)].sort((a, b) => a - b);
    const place = new Map(sorted.map((end, index) => [end, index + 1]));
    const tree = new Int32Array(sorted.length + 1);
    ends.forEach((end, seen) => {
      const at = place.get(end);
      let before = 0;
      for (let index = at; index > 0; index -= index & -index) before += tree[index];
      total += seen - before;
      for (let index = at; index <= sorted.length; index += index & -index) tree[index]++;
    });
  }
  return total;
}

// -- coordinates ------------------------------------------------------------------------------------

// Each box wants to stand where its neighbours are; sweeps down and up give it the nearest place
// that keeps the order and the gaps (least squares by pooling neighbours that collide).
function placeCells(ranks) {
  const cells = [];
  for (const rank of ranks) for (const cell of rank) cells[cell.at] = cell;
  for (const rank of ranks) {
    let x = 0;
    for (const cell of rank) {
      cell.x = x + cell.w / 2;
      x += cell.w + gap(cell);
    }
    const middle = x / 2;
    for (const cell of rank) cell.x -= middle;
  }
  for (let sweep = 0; sweep < 14; sweep++) {
    const [up, down] = sweep < 12 ? [sweep % 2 === 0, sweep % 2 === 1] : [true, true];
    const order = sweep % 2 === 0 ? ranks : [...ranks].reverse();
    for (const rank of order) settle(rank, up, down, cells);
  }
}

const gap = (cell) => (cell.real && !cell.port ? GAP_X : 8);

function settle(rank, up, down, cells) {
  const blocks = [];
  let offset = 0;
  rank.forEach((cell, index) => {
    if (index) offset += rank[index - 1].w / 2 + Math.max(gap(rank[index - 1]), gap(cell)) / (rank[index - 1].real && cell.real ? 1 : 1.4) + cell.w / 2;
    cell.offset = offset;
    const links = [...(up ? cell.up : []), ...(down ? cell.down : [])];
    // A branch of a trunk does not pull a box out of its own column.
    const firm = links.some((link) => link.weight >= DIRECT);
    let [sum, weight] = [0, 0];
    for (const link of links) {
      if (firm && link.weight === LOOSE) continue;
      const above = cells[link.from] !== cell;
      const other = cells[above ? link.from : link.to];
      const offset = above ? link.fromX - link.toX : link.toX - link.fromX;
      sum += (other.x + offset) * link.weight;
      weight += link.weight;
    }
    const wish = weight ? sum / weight : cell.x;
    let block = { first: index, sum: (wish - offset) * (weight || 0.05), weight: weight || 0.05 };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).weight > block.sum / block.weight) {
      const before = blocks.pop();
      block = { first: before.first, sum: before.sum + block.sum, weight: before.weight + block.weight };
    }
    blocks.push(block);
  });
  blocks.forEach((block, number) => {
    const end = number + 1 < blocks.length ? blocks[number + 1].first : rank.length;
    for (let index = block.first; index < end; index++) {
      rank[index].x = block.sum / block.weight + rank[index].offset;
    }
  });
}

function finishPart(part, cells, ranks, edges, paths) {
  let left = Infinity;
  let right = -Infinity;
  for (const cell of cells) {
    left = Math.min(left, cell.x - cell.w / 2);
    right = Math.max(right, cell.x + cell.w / 2);
  }
  let y = 0;
  const tops = [];
  const bottoms = [];
  ranks.forEach((rank, index) => {
    const height = Math.max(...rank.map((cell) => cell.h));
    const lines = rank.reduce((sum, cell) => sum + cell.down.length, 0);
    tops[index] = y;
    bottoms[index] = y + height;
    if (index + 1 === ranks.length) {
      y += height;
      return;
    }
    const ports = rank.every((cell) => !cell.real || cell.port) || ranks[index + 1].every((cell) => !cell.real || cell.port);
    y += height + (ports ? 14 : GAP_Y) + Math.min(30, Math.max(0, lines - 6) * 1.5);
  });
  ranks.forEach((rank, index) => {
    for (const cell of rank) cell.y = (tops[index] + bottoms[index]) / 2;
  });
  const places = part.map((index, at) => [index, { x: cells[at].x - left, y: cells[at].y }]);
  const routes = edges.map((edge, number) => {
    const [from, to] = [cells[edge.from], cells[edge.to]];
    const route = [[from.x + edge.fromX - left, from.y + from.h / 2]];
    if (from.y + from.h / 2 < bottoms[from.rank] - 0.5) route.push([route[0][0], bottoms[from.rank]]);
    for (const at of paths[number]) {
      const cell = cells[at];
      route.push([cell.x - left, tops[cell.rank]]);
      if (bottoms[cell.rank] > tops[cell.rank]) route.push([cell.x - left, bottoms[cell.rank]]);
    }
    const end = to.x + edge.toX - left;
    if (to.y - to.h / 2 > tops[to.rank] + 0.5) route.push([end, tops[to.rank]]);
    route.push([end, to.y - to.h / 2]);
    return [edge.index, route];
  });
  return { width: right - left, height: y, places, routes };
}
