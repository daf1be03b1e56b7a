// Where the boxes, open groups and lines of a model are drawn: every open group is laid out by itself,
// from the innermost out, and lines cross the edges of groups at ports.

const HEAD = 26; // height of an open group's title
const PAD = 14;
const PHASE_ORDER = ["forward", "recompute", "backward", "optimizer", "other"];
const MOST_IN_ROW = 6; // phases or graphs that stand in one row, their upper edges aligned
const LANE_GAP = 56;
// Which end of an edge is the box that takes its value, which the other, and where it ends there.
const TAKEN_BELOW = /** @type {const} */ (["to", "from", "toX"]);
const TAKEN_ABOVE = /** @type {const} */ (["from", "to", "fromX"]);

class Arrangement {
  /**
   * @param {Model} model
   * @param {(box: number) => BoxSize} measure
   */
  constructor(model, measure) {
    this.model = model;
    this.measure = measure;
    /** @type {Map<number, Level>} */
    this.levels = new Map();
    /** @type {Map<number, { w: number, h: number }>} */
    this.sizes = new Map(); // of open groups
  }

  /** @returns {Picture} */
  picture() {
    this.collect();
    const tracks = this.model.lines().map((line) => this.track(line));
    for (const level of this.levels.values()) this.orient(level);
    const leads = tracks.map((track) => this.lead(track));
    const { depth } = this.model;
    const outer = [...this.levels.values()].sort((a, b) => depth[a.group] - depth[b.group]);
    for (const level of [...outer].reverse()) this.arrange(level);
    return this.absolute(outer, leads);
  }

  // -- what is to be laid out ------------------------------------------------------------------------

  // The children of every open group, in printed order.
  collect() {
    const { model } = this;
    const pending = [0];
    for (let group = pending.pop(); group !== undefined; group = pending.pop()) {
      const children = model.members[group].filter((node) => model.shows(node)).map((node) => ({ box: node, first: node }));
      for (const inner of model.inner[group]) {
        if (!model.sizes[inner]) continue;
        children.push({ box: ~inner, first: model.firstOf(inner) });
        if (model.open.has(inner)) pending.push(inner);
      }
      children.sort((a, b) => a.first - b.first);
      this.levels.set(group, {
        group, children, number: new Map(children.map(({ box }, index) => [box, index])),
        ports: new Map(), pairs: new Map(), edges: new Map(), row: false, shift: 0, boxes: [], places: [],
      });
    }
  }

  /** @param {number} group */
  level(group) { return valueAt(this.levels, group); }

  /**
   * @param {Line} line
   * @returns {Track}
   */
  track(line) {
    const { model } = this;
    const [up, down] = [line.from, line.to].map((end) =>
      [end, ...model.groupsAround(end).slice(0, -1).map((group) => ~group)]);
    while (up.length > 1 && down.length > 1 && last(up) === last(down)) {
      up.pop();
      down.pop();
    }
    const level = this.level(model.parentOf(last(up)));
    const [a, b] = [valueAt(level.number, last(up)), valueAt(level.number, last(down))];
    const pair = valueOrNew(level.pairs, `${a} ${b}`, () => ({ a, b, back: false }));
    return { line, up, down, level, pair };
  }

  /**
   * Lines run downwards but for those that close a cycle.  The backward pass runs upwards, so that
   * each layer's gradient stands beside the layer.
   * @param {Level} level
   */
  orient(level) {
    breakCycles(level);
    const { group } = level;
    const lane = this.model.lane[group];
    const upwards = group > 0 && this.model.phase[lane] && this.model.groupText("name", lane).startsWith("backward");
    if (upwards) for (const pair of level.pairs.values()) pair.back = !pair.back;
  }

  /**
   * @param {Track} track
   * @returns {Lead}
   */
  lead(track) {
    const { line, up, down, level, pair } = track;
    const out = line.far ? [] : this.ports(up, pair.back ? "top" : "bottom");
    const into = line.far ? [] : this.ports(down, pair.back ? "bottom" : "top");
    const [outPin, inPin] = [out.at(-1) ?? null, into.at(-1) ?? null];
    const key = `${pair.a} ${pair.b} ${outPin?.key ?? ""} ${inPin?.key ?? ""}`;
    const edge = valueOrNew(level.edges, key, () => ({ pair, outPin, inPin, count: 0, route: [] }));
    edge.count += line.values.length;
    return { ...track, out, in: into, edge };
  }

  /**
   * Ports on the path from a box through the edges of the groups around it.
   * @param {number[]} boxes
   * @param {Side} side
   */
  ports(boxes, side) {
    /** @type {Port[]} */
    const ports = [];
    boxes.slice(1).forEach((outer, index) => {
      const inner = boxes[index];
      const pin = ports.at(-1) ?? null;
      const key = `${inner}/${pin?.key ?? ""}/${side}`;
      const group = ~outer;
      const level = this.level(group);
      const child = valueAt(level.number, inner);
      ports.push(valueOrNew(level.ports, key, () => ({ group, key, child, pin, side, number: 0, x: 0, route: [] })));
    });
    return ports;
  }

  // -- layout of one group ---------------------------------------------------------------------------

  /** @param {Level} level */
  arrange(level) {
    level.boxes = level.children.map(({ box }) => {
      const { w, h } = this.sizes.get(box) ?? this.measure(box);
      return { w, h, port: null };
    });
    const joins = [...this.joinsOfEdges(level), ...this.joinsOfPorts(level)];
    const layout = this.layout(level, joins.map(({ edge }) => edge));
    joins.forEach(({ owner }, index) => { owner.route = layout.routes[index]; });
    level.places = layout.places;
    this.frame(level, layout);
  }

  /**
   * @param {Level} level
   * @returns {Join[]}
   */
  joinsOfEdges(level) {
    return [...level.edges.values()].map((owner) => {
      const { a, b, back } = owner.pair;
      const weight = Math.min(3, 1 + Math.log2(owner.count) / 3);
      const [outX, inX] = [pinX(level, a, owner.outPin), pinX(level, b, owner.inPin)];
      const edge = back ? { from: b, to: a, fromX: inX, toX: outX, weight, back }
        : { from: a, to: b, fromX: outX, toX: inX, weight, back };
      return { edge, owner };
    });
  }

  /**
   * Each port becomes a box of its own.
   * @param {Level} level
   * @returns {Join[]}
   */
  joinsOfPorts(level) {
    const ports = [...level.ports.values()].map((port) => ({ port, x: pinX(level, port.child, port.pin) }));
    // In the order of the boxes that they lead to, so that those keep theirs.
    ports.sort((a, b) => a.port.child - b.port.child || a.x - b.x);
    return ports.map(({ port, x }) => {
      port.number = level.boxes.push({ w: 4, h: 0, port: port.side }) - 1;
      const edge = port.side === "top" ? { from: port.number, to: port.child, fromX: 0, toX: x, weight: 1, back: false }
        : { from: port.child, to: port.number, fromX: x, toX: 0, weight: 1, back: false };
      return { edge, owner: port };
    });
  }

  /**
   * @param {Level} level
   * @param {LayoutEdge[]} edges
   */
  layout(level, edges) {
    const { boxes } = level;
    const across = this.across(level.group);
    if (across) {
      turnBoxes(boxes);
      for (const edge of edges) [edge.fromX, edge.toX] = [0, 0];
    }
    spreadEnds(boxes, edges);
    const layout = layoutLevel(boxes, edges, across ? -1 : 0);
    if (across) {
      turnBoxes(boxes);
      turnLayout(layout);
    }
    level.row = across && (boxes.length <= MOST_IN_ROW || level.group !== 0);
    if (level.row) setInRow(layout, boxes, level.children.map(({ box }) => this.phaseOrder(box)));
    return layout;
  }

  /**
   * Phases stand side by side, and so do graphs.
   * @param {number} group
   */
  across(group) {
    const { model } = this;
    const inner = model.inner[group].filter((child) => model.sizes[child]);
    return inner.length > 1 && (group === 0 || inner.filter((child) => model.phase[child]).length > 1);
  }

  /** @param {number} box */
  phaseOrder(box) {
    const isPhase = box < 0 && this.model.phase[~box];
    return isPhase ? PHASE_ORDER.indexOf(this.model.groupText("name", ~box).split("/")[0]) : PHASE_ORDER.length;
  }

  /**
   * The size of an open group, and where its ports are.
   * @param {Level} level
   * @param {Layout} layout
   */
  frame(level, layout) {
    // Lines that come in from above stay right of the title.
    const title = level.group ? this.measure(~level.group).title + 30 : 0;
    const ports = [...level.ports.values()];
    const tops = ports.filter(({ side }) => side === "top").map(({ number }) => layout.places[number].x);
    const least = tops.length ? title - Math.min(...tops) : 0;
    const inner = Math.max(layout.width + 2 * PAD, title);
    level.shift = Math.max((inner - layout.width) / 2, least);
    for (const port of ports) port.x = layout.places[port.number].x + level.shift;
    const w = Math.max(inner, level.shift + layout.width + PAD);
    const h = layout.height + HEAD + PAD * 1.5;
    this.sizes.set(~level.group, { w, h });
  }

  // -- all of them together --------------------------------------------------------------------------

  /**
   * Everything in the coordinates of the whole.
   * @param {Level[]} levels outer ones first
   * @param {Lead[]} leads
   * @returns {Picture}
   */
  absolute(levels, leads) {
    /** @type {Map<number, Place>} */
    const boxes = new Map();
    const origin = new Map([[0, { x: 0, y: 0 }]]);
    for (const level of levels) {
      const corner = valueAt(origin, level.group);
      level.children.forEach(({ box }, index) => {
        const place = this.place(level, index, corner);
        boxes.set(box, place);
        if (place.open) origin.set(~box, { x: place.x, y: place.y + HEAD + PAD * 0.5 });
      });
    }
    /** @param {number} group @param {Point[]} route */
    const moved = (group, route) => {
      const { x, y } = valueAt(origin, group);
      const { shift } = this.level(group);
      return route.map(([px, py]) => /** @type {Point} */ ([px + x + shift, py + y]));
    };
    const lines = leads.map((lead) => {
      const inRow = lead.level.row && lead.line.far;
      const points = inRow ? overTop(valueAt(boxes, last(lead.up)), valueAt(boxes, last(lead.down)))
        : pointsOf(lead, boxes, moved);
      return { ...lead.line, points, across: inRow && points.length === 2 };
    });
    const whole = valueAt(this.sizes, ~0);
    return { boxes, lines, width: whole.w, height: whole.h };
  }

  /**
   * @param {Level} level
   * @param {number} index
   * @param {Position} corner
   * @returns {Place}
   */
  place(level, index, corner) {
    const { box } = level.children[index];
    const { w, h } = level.boxes[index];
    const middle = level.places[index];
    return {
      box, w, h, x: corner.x + level.shift + middle.x - w / 2, y: corner.y + middle.y - h / 2,
      open: box < 0 && this.model.open.has(~box), depth: this.model.depth[level.group],
    };
  }
}

/**
 * @template T
 * @param {T[]} items at least one
 */
function last(items) {
  return items[items.length - 1];
}

/**
 * Where a port of an open child is, from the child's middle.
 * @param {Level} level
 * @param {number} child
 * @param {Port | null} pin
 */
function pinX(level, child, pin) {
  return pin ? pin.x - level.boxes[child].w / 2 : 0;
}

/**
 * The points of a line: out of the groups around its start, across, and into those around its end.
 * @param {Lead} lead
 * @param {Map<number, Place>} boxes
 * @param {(group: number, route: Point[]) => Point[]} moved
 */
function pointsOf(lead, boxes, moved) {
  /** @type {Point[]} */
  const points = [];
  /** @param {Point[]} route @param {boolean} backwards */
  const join = (route, backwards) => { points.push(...(backwards ? route.reverse() : route)); };
  for (const { group, route, side } of lead.out) {
    join(moved(group, route), side === "top");
    const frame = valueAt(boxes, ~group);
    points.push([last(points)[0], side === "top" ? frame.y : frame.y + frame.h]);
  }
  join(moved(lead.level.group, lead.edge.route), lead.pair.back);
  for (const { group, route, side } of [...lead.in].reverse()) join(moved(group, route), side === "bottom");
  return points;
}

/** @param {LayoutBox[]} boxes */
function turnBoxes(boxes) {
  for (const box of boxes) [box.w, box.h] = [box.h, box.w];
}

/**
 * From top to bottom becomes from left to right.
 * @param {Layout} layout
 */
function turnLayout(layout) {
  [layout.width, layout.height] = [layout.height, layout.width];
  for (const place of layout.places) [place.x, place.y] = [place.y, place.x];
  for (const route of layout.routes) for (const point of route) point.reverse();
}

/**
 * Boxes beside each other: phases in their order, others from left to right as they were.
 * @param {Layout} layout
 * @param {LayoutBox[]} boxes
 * @param {number[]} phases
 */
function setInRow(layout, boxes, phases) {
  const { places } = layout;
  const order = boxes.map((_, index) => index);
  order.sort((a, b) => phases[a] - phases[b] || places[a].x - places[b].x || a - b);
  let x = 0;
  for (const index of order) {
    places[index] = { x: x + boxes[index].w / 2, y: boxes[index].h / 2 };
    x += boxes[index].w + LANE_GAP;
  }
  layout.width = x - LANE_GAP;
  layout.height = Math.max(...boxes.map((box) => box.h));
}

/**
 * A line between boxes of a row: straight to the next, over the top to others.
 * @param {Place} from
 * @param {Place} to
 * @returns {Point[]}
 */
function overTop(from, to) {
  const distance = to.x - from.x - from.w;
  if (distance > 0 && distance < LANE_GAP * 1.5) {
    const y = Math.min(from.y + from.h, to.y + to.h) - 13;
    return [[from.x + from.w, y], [to.x, y]];
  }
  const right = to.x > from.x;
  const above = from.y - 16 - Math.min(40, Math.abs(to.x - from.x) / 60);
  const start = right ? from.x + from.w - 24 : from.x + 24;
  const end = right ? to.x + 24 : to.x + to.w - 24;
  const corner = right ? 8 : -8;
  return [[start, from.y], [start, above + 8], [start + corner, above], [end - corner, above], [end, above + 8], [end, to.y]];
}

/**
 * Which lines of a group run upwards: those that close a cycle, seen in printed order.
 * @param {Level} level
 */
function breakCycles(level) {
  /** @type {Pair[][]} */
  const outgoing = level.children.map(() => []);
  for (const pair of level.pairs.values()) outgoing[pair.a].push(pair);
  const [UNSEEN, ON_PATH, DONE] = [0, 1, 2];
  const state = level.children.map(() => UNSEEN);
  for (let start = 0; start < outgoing.length; start++) {
    if (state[start] !== UNSEEN) continue;
    const path = [{ box: start, next: 0 }];
    state[start] = ON_PATH;
    while (path.length) {
      const top = last(path);
      if (top.next === outgoing[top.box].length) {
        state[top.box] = DONE;
        path.pop();
        continue;
      }
      const pair = outgoing[top.box][top.next++];
      if (state[pair.b] === ON_PATH) pair.back = true;
      else if (state[pair.b] === UNSEEN) {
        state[pair.b] = ON_PATH;
        path.push({ box: pair.b, next: 0 });
      }
    }
  }
}

/**
 * Several values that a box takes end beside each other rather than in one point.
 * @param {LayoutBox[]} boxes
 * @param {LayoutEdge[]} edges
 */
function spreadEnds(boxes, edges) {
  /** @type {Map<number, { edge: LayoutEdge, offset: "fromX" | "toX", other: number }[]>} */
  const sides = new Map();
  for (const edge of edges) {
    const [end, other, offset] = edge.back ? TAKEN_ABOVE : TAKEN_BELOW;
    if (boxes[edge[end]].port || edge[offset]) continue;
    valueOrNew(sides, edge[end], () => []).push({ edge, offset, other: edge[other] });
  }
  for (const [box, ends] of sides) {
    if (ends.length < 2) continue;
    ends.sort((a, b) => a.other - b.other);
    const room = Math.min(boxes[box].w * 0.6, 14 * (ends.length - 1));
    ends.forEach(({ edge, offset }, index) => { edge[offset] = (index / (ends.length - 1) - 0.5) * room; });
  }
}
