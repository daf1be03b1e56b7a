// Lays out the boxes of one group in ranks from top to bottom (Sugiyama, Tagawa and Toda, 1981):
// rank, order within ranks, coordinates.  Ports get the first and the last rank.

const GAP_X = 22;
const GAP_Y = 34;
const MOST_IN_RANK = 12;
const WIDE_RANK = 900; // a rank narrower than this stays one
// How strongly lines pull their ends together: where they join boxes of neighbouring ranks, at the
// ends of a longer line, and within it.
const [DIRECT, LOOSE, TRUNK] = [3, 0.4, 4];
const SHELF = 1.5; // width by height that parts without lines between them are packed into

/**
 * @param {LayoutBox[]} boxes
 * @param {LayoutEdge[]} edges without cycles
 * @param {number} [most] width of a row of parts; without it they are packed into a page
 * @returns {Layout}
 */
function layoutLevel(boxes, edges, most = 0) {
  const parts = components(boxes, edges).map((part) => layoutPart(part, boxes, edges));
  const area = parts.reduce((sum, part) => sum + (part.width + GAP_X) * (part.height + GAP_Y), 0);
  const widest = Math.max(...parts.map((part) => part.width));
  const limit = most || Math.max(Math.sqrt(area * SHELF), widest);
  /** @type {Position[]} */
  const places = new Array(boxes.length);
  /** @type {Point[][]} */
  const routes = new Array(edges.length);
  let [x, y, row, width] = [0, 0, 0, 0];
  for (const part of parts) {
    if (x > 0 && x + part.width > limit) {
      [x, y, row] = [0, y + row + GAP_Y, 0];
    }
    for (const [box, place] of part.places) places[box] = { x: place.x + x, y: place.y + y };
    for (const [edge, route] of part.routes) routes[edge] = shifted(route, x, y);
    x += part.width + GAP_X * 1.5;
    row = Math.max(row, part.height);
    width = Math.max(width, x - GAP_X * 1.5);
  }
  return { width, height: y + row, places, routes };
}

/**
 * @param {Point[]} route
 * @param {number} dx
 * @param {number} dy
 * @returns {Point[]}
 */
function shifted(route, dx, dy) {
  return route.map(([x, y]) => [x + dx, y + dy]);
}

/**
 * Boxes that lines join, each part in order.  All that lines from outside lead to are one part: set
 * below others they would be reached through them, as ports lie on the group's edge.
 * @param {LayoutBox[]} boxes
 * @param {LayoutEdge[]} edges
 */
function components(boxes, edges) {
  const root = boxes.map((_, box) => box);
  /** @param {number} box */
  const rootOf = (box) => {
    while (root[box] !== box) {
      root[box] = root[root[box]];
      box = root[box];
    }
    return box;
  };
  /** @param {number} a @param {number} b */
  const unite = (a, b) => { root[Math.max(a, b)] = Math.min(a, b); };
  for (const { from, to } of edges) unite(rootOf(from), rootOf(to));
  let first = -1;
  boxes.forEach(({ port }, box) => {
    if (!port) return;
    const own = rootOf(box);
    first = first < 0 ? own : rootOf(first);
    unite(own, first);
  });
  /** @type {Map<number, number[]>} */
  const parts = new Map();
  boxes.forEach((_, box) => { valueOrNew(parts, rootOf(box), () => []).push(box); });
  return [...parts.values()];
}

/**
 * @param {number[]} part
 * @param {LayoutBox[]} boxes
 * @param {LayoutEdge[]} edges
 * @returns {PartLayout}
 */
function layoutPart(part, boxes, edges) {
  const inside = new Map(part.map((box, index) => [box, index]));
  /** @type {PartEdge[]} */
  const own = [];
  edges.forEach((edge, index) => {
    const [from, to] = [inside.get(edge.from), inside.get(edge.to)];
    if (from !== undefined && to !== undefined) own.push({ ...edge, from, to, index });
  });
  const cells = part.map((box, index) => newCell(boxes[box], index));
  for (const edge of own) {
    cells[edge.from].down.push(edge);
    cells[edge.to].up.push(edge);
  }
  rankCells(cells);
  widenRanks(cells);
  const { links, paths } = breakLongEdges(cells, own);
  const ranks = orderRanks(cells, links);
  placeCells(ranks, cells);
  return finishPart(part, cells, ranks, own, paths);
}

/**
 * @param {LayoutBox} box
 * @param {number} index
 * @returns {Cell}
 */
function newCell({ w, h, port }, index) {
  return { w, h, port, index, real: true, up: [], down: [], rank: 0, order: 0, x: 0, y: 0, offset: 0 };
}

// -- ranks ----------------------------------------------------------------------------------------

/**
 * The longest path from a source; then sources, and whatever has more users than inputs, go down to
 * just above their users, so that lines are short.
 * @param {Cell[]} cells
 */
function rankCells(cells) {
  const order = topological(cells);
  for (const cell of order) {
    cell.rank = cell.port === "top" ? 0 : 1;
    for (const edge of cell.up) cell.rank = Math.max(cell.rank, cells[edge.from].rank + 1);
  }
  const last = Math.max(...cells.map((cell) => cell.rank)) + 1;
  for (const cell of order.reverse()) {
    if (cell.port === "bottom") cell.rank = last;
    if (cell.port || cell.down.length <= cell.up.length) continue;
    let lowest = Infinity;
    for (const edge of cell.down) {
      if (cells[edge.to].port !== "bottom") lowest = Math.min(lowest, cells[edge.to].rank - 1);
    }
    if (lowest < Infinity) cell.rank = Math.max(cell.rank, lowest);
  }
  dropEmptyRanks(cells);
}

/** @param {Cell[]} cells */
function topological(cells) {
  const waiting = cells.map((cell) => cell.up.length);
  const order = cells.filter((_, index) => !waiting[index]);
  for (const cell of order) {
    for (const edge of cell.down) if (!--waiting[edge.to]) order.push(cells[edge.to]);
  }
  return order;
}

/** @param {Cell[]} cells */
function dropEmptyRanks(cells) {
  const used = [...new Set(cells.map((cell) => cell.rank))].sort((a, b) => a - b);
  const number = new Map(used.map((rank, index) => [rank, index]));
  for (const cell of cells) cell.rank = valueAt(number, cell.rank);
}

/**
 * The cells of each rank; no rank is empty.
 * @param {Cell[]} cells
 */
function byRank(cells) {
  /** @type {Cell[][]} */
  const ranks = [];
  for (const cell of cells) {
    ranks[cell.rank] ??= [];
    ranks[cell.rank].push(cell);
  }
  return ranks;
}

/**
 * A rank of very many or very wide boxes becomes several: what is a mile wide cannot be read.
 * @param {Cell[]} cells
 */
function widenRanks(cells) {
  let added = 0;
  for (const rank of byRank(cells)) {
    const rows = rank.some((cell) => cell.port) ? 1 : rowsFor(rank);
    const length = Math.ceil(rank.length / rows);
    rank.forEach((cell, index) => { cell.rank += added + Math.floor(index / length); });
    added += Math.ceil(rank.length / length) - 1;
  }
}

/** @param {Cell[]} rank */
function rowsFor(rank) {
  const wide = rank.reduce((sum, cell) => sum + cell.w + GAP_X, 0);
  const area = rank.reduce((sum, cell) => sum + (cell.w + GAP_X) * (cell.h + GAP_Y), 0);
  const most = Math.max(WIDE_RANK, Math.sqrt(area * SHELF) * 1.5);
  return Math.min(rank.length, Math.max(Math.ceil(rank.length / MOST_IN_RANK), Math.ceil(wide / most)));
}

/**
 * A line over several ranks gets a narrow cell in each, so that it finds its way between boxes.
 * Lines of one value share them: a mask that fifty layers take is one trunk with branches.
 * @param {Cell[]} cells
 * @param {PartEdge[]} edges
 * @returns {{ links: LayoutLink[], paths: number[][] }} `paths`: the cells that each edge passes
 */
function breakLongEdges(cells, edges) {
  /** @type {Map<string, number>} */
  const shared = new Map();
  /** @param {string} value @param {number} rank */
  const passed = (value, rank) => valueOrNew(shared, `${value}@${rank}`, () => {
    const cell = newCell({ w: 6, h: 0, port: null }, cells.length);
    return cells.push({ ...cell, rank, real: false }) - 1;
  });
  /** @type {Map<string, LayoutLink>} */
  const links = new Map();
  /** @param {LayoutLink} link */
  const join = (link) => {
    valueOrNew(links, `${link.from} ${link.to} ${link.fromX} ${link.toX}`, () => link);
  };
  const paths = edges.map(({ from, to, fromX, toX, weight, back }) => {
    const value = back ? `${to}:${toX}<` : `${from}:${fromX}>`;
    const path = [];
    let [above, offset] = [from, fromX];
    for (let rank = cells[from].rank + 1; rank < cells[to].rank; rank++) {
      const cell = passed(value, rank);
      join({ from: above, to: cell, fromX: offset, toX: 0, weight: above === from ? LOOSE : TRUNK });
      [above, offset] = [cell, 0];
      path.push(cell);
    }
    join({ from: above, to, fromX: offset, toX, weight: path.length ? LOOSE : weight * DIRECT });
    return path;
  });
  for (const cell of cells) [cell.up, cell.down] = [[], []];
  for (const link of links.values()) {
    cells[link.from].down.push(link);
    cells[link.to].up.push(link);
  }
  return { links: [...links.values()], paths };
}

// -- order within ranks -----------------------------------------------------------------------------

/**
 * @param {Cell[]} cells
 * @param {LayoutLink[]} links
 */
function orderRanks(cells, links) {
  const ranks = byRank(cells);
  ranks.forEach(numberRank);
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
  best.forEach(numberRank);
  return best;
}

/** @param {Cell[]} rank */
function numberRank(rank) {
  rank.forEach((cell, index) => { cell.order = index; });
}

/**
 * By the mean place of the neighbours in the rank before; boxes without neighbours stay.
 * @param {Cell[]} rank
 * @param {boolean} down whether the rank before is the one above
 * @param {Cell[]} cells
 */
function sortRank(rank, down, cells) {
  /** @type {{ cell: Cell, mean: number }[]} */
  const moving = [];
  /** @type {number[]} */
  const slots = [];
  rank.forEach((cell, slot) => {
    let [sum, weight] = [0, 0];
    for (const link of down ? cell.up : cell.down) {
      const other = cells[down ? link.from : link.to];
      const offset = down ? link.fromX : link.toX;
      sum += (other.order + offset / (other.w + 1)) * link.weight;
      weight += link.weight;
    }
    if (!weight) return;
    moving.push({ cell, mean: sum / weight });
    slots.push(slot);
  });
  moving.sort((a, b) => a.mean - b.mean || a.cell.order - b.cell.order);
  moving.forEach(({ cell }, index) => { rank[slots[index]] = cell; });
  numberRank(rank);
}

/**
 * Crossings between neighbouring ranks, by counting with a binary indexed tree.
 * @param {Cell[][]} ranks
 * @param {Cell[]} cells
 */
function crossings(ranks, cells) {
  let total = 0;
  for (const rank of ranks.slice(0, -1)) {
    /** @type {number[]} */
    const ends = [];
    for (const cell of rank) {
      const own = cell.down.map(({ fromX, to, toX }) => [fromX, cells[to].order + toX / (cells[to].w + 1)]);
      own.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      for (const [, end] of own) ends.push(end);
    }
    const order = [...ends.keys()].sort((a, b) => ends[a] - ends[b]);
    const place = new Int32Array(ends.length); // of each end among the distinct ones, from 1 on
    let distinct = 0;
    order.forEach((end, index) => {
      if (!index || ends[end] !== ends[order[index - 1]]) distinct++;
      place[end] = distinct;
    });
    const tree = new Int32Array(distinct + 1);
    place.forEach((number, seen) => {
      let before = 0;
      for (let index = number; index > 0; index -= index & -index) before += tree[index];
      total += seen - before;
      for (let index = number; index <= distinct; index += index & -index) tree[index]++;
    });
  }
  return total;
}

// -- coordinates ------------------------------------------------------------------------------------

/**
 * Each box wants to stand where its neighbours are; sweeps down and up give it the nearest place
 * that keeps the order and the gaps (least squares by pooling neighbours that collide).
 * @param {Cell[][]} ranks
 * @param {Cell[]} cells
 */
function placeCells(ranks, cells) {
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

/** @param {Cell} cell */
const gap = (cell) => (cell.real && !cell.port ? GAP_X : 8);

/**
 * From the middle of a cell to that of the next one at its right.
 * @param {Cell} left
 * @param {Cell} right
 */
function spacing(left, right) {
  const between = Math.max(gap(left), gap(right)) / (left.real && right.real ? 1 : 1.4);
  return left.w / 2 + between + right.w / 2;
}

/**
 * @param {Cell[]} rank
 * @param {boolean} up whether neighbours above pull
 * @param {boolean} down whether neighbours below pull
 * @param {Cell[]} cells
 */
function settle(rank, up, down, cells) {
  /** @type {{ first: number, sum: number, weight: number }[]} */
  const blocks = [];
  let offset = 0;
  rank.forEach((cell, index) => {
    if (index) offset += spacing(rank[index - 1], cell);
    cell.offset = offset;
    const links = [...(up ? cell.up : []), ...(down ? cell.down : [])];
    const { x, weight } = wish(cell, links, cells);
    let block = { first: index, sum: (x - offset) * weight, weight };
    for (let last = blocks.at(-1); last && last.sum / last.weight > block.sum / block.weight; last = blocks.at(-1)) {
      blocks.pop();
      block = { first: last.first, sum: last.sum + block.sum, weight: last.weight + block.weight };
    }
    blocks.push(block);
  });
  blocks.forEach((block, number) => {
    const end = number + 1 < blocks.length ? blocks[number + 1].first : rank.length;
    for (const cell of rank.slice(block.first, end)) cell.x = block.sum / block.weight + cell.offset;
  });
}

/**
 * Where a cell's links pull it, and how strongly; without links it hardly holds its own place.
 * @param {Cell} cell
 * @param {LayoutLink[]} links
 * @param {Cell[]} cells
 */
function wish(cell, links, cells) {
  // A branch of a trunk does not pull a box out of its own column.
  const firm = links.some((link) => link.weight >= DIRECT);
  let [sum, weight] = [0, 0];
  for (const link of links) {
    if (firm && link.weight === LOOSE) continue;
    const above = link.from !== cell.index;
    const other = cells[above ? link.from : link.to];
    const offset = above ? link.fromX - link.toX : link.toX - link.fromX;
    sum += (other.x + offset) * link.weight;
    weight += link.weight;
  }
  return weight ? { x: sum / weight, weight } : { x: cell.x, weight: 0.05 };
}

/**
 * @param {number[]} part
 * @param {Cell[]} cells
 * @param {Cell[][]} ranks
 * @param {PartEdge[]} edges
 * @param {number[][]} paths
 * @returns {PartLayout}
 */
function finishPart(part, cells, ranks, edges, paths) {
  let left = Infinity;
  let right = -Infinity;
  for (const cell of cells) {
    left = Math.min(left, cell.x - cell.w / 2);
    right = Math.max(right, cell.x + cell.w / 2);
  }
  const { tops, bottoms, height } = stackRanks(ranks);
  for (const cell of cells) cell.y = (tops[cell.rank] + bottoms[cell.rank]) / 2;
  return {
    width: right - left,
    height,
    places: part.map((box, index) => [box, { x: cells[index].x - left, y: cells[index].y }]),
    routes: edges.map((edge, number) => {
      const route = routeOf(edge, paths[number], cells, tops, bottoms);
      return [edge.index, shifted(route, -left, 0)];
    }),
  };
}

/**
 * The upper and the lower edge of each rank.
 * @param {Cell[][]} ranks
 */
function stackRanks(ranks) {
  /** @param {Cell[]} rank */
  const holdsNoBox = (rank) => rank.every((cell) => !cell.real || cell.port);
  /** @type {number[]} */
  const tops = [];
  /** @type {number[]} */
  const bottoms = [];
  let y = 0;
  ranks.forEach((rank, index) => {
    const height = Math.max(...rank.map((cell) => cell.h));
    tops.push(y);
    bottoms.push(y + height);
    if (index + 1 === ranks.length) return;
    const lines = rank.reduce((sum, cell) => sum + cell.down.length, 0);
    const ports = holdsNoBox(rank) || holdsNoBox(ranks[index + 1]);
    y += height + (ports ? 14 : GAP_Y) + Math.min(30, Math.max(0, lines - 6) * 1.5);
  });
  return { tops, bottoms, height: bottoms[bottoms.length - 1] };
}

/**
 * @param {PartEdge} edge
 * @param {number[]} path
 * @param {Cell[]} cells
 * @param {number[]} tops
 * @param {number[]} bottoms
 */
function routeOf(edge, path, cells, tops, bottoms) {
  const [from, to] = [cells[edge.from], cells[edge.to]];
  const start = from.x + edge.fromX;
  /** @type {Point[]} */
  const route = [[start, from.y + from.h / 2]];
  if (from.y + from.h / 2 < bottoms[from.rank] - 0.5) route.push([start, bottoms[from.rank]]);
  for (const index of path) {
    const { x, rank } = cells[index];
    route.push([x, tops[rank]]);
    if (bottoms[rank] > tops[rank]) route.push([x, bottoms[rank]]);
  }
  const end = to.x + edge.toX;
  if (to.y - to.h / 2 > tops[to.rank] + 0.5) route.push([end, tops[to.rank]]);
  route.push([end, to.y - to.h / 2]);
  return route;
}
