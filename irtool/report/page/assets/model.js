// The dump as the page holds it: members (statements and parameters), the groups they stand in, what
// is open, and what follows from that: boxes, lines, and where they are.

const [OPERATOR, WEIGHT, INPUT, PASSING, RESULT, CALL, MONAD] = [0, 1, 2, 3, 4, 5, 6];
const HEAD = 26; // height of an open group's title
const PAD = 14;
const PHASE_ORDER = ["forward", "recompute", "backward", "optimizer", "other"];
const PHASE = /^(forward|backward|recompute|optimizer|other)(\/|$)/;
const MOST_IN_ROW = 6; // phases or graphs that stand in one row, their upper edges aligned
const LANE_GAP = 56;

class Model {
  constructor(data) {
    this.strings = data.strings;
    this.classes = data.classes;
    this.nodes = data.nodes;
    this.edges = data.edges;
    this.groups = data.groups;
    this.overlays = data.overlays;
    this.first = data.first;
    this.count = this.nodes.kind.length;
    this.open = new Set([0]);
    this.withPassing = false;
    this.byKey = new Map(this.nodes.key.map((key, node) => [this.strings[key], node]));
    this.partners = this.pairs(data.ties);
    this.joined = data.links;
    this.notes = new Map(data.notes.map(([from, to, text]) => [`${from} ${to}`, text]));
    this.buildGroups();
    this.refresh();
  }

  text(column, node) { return this.strings[this.nodes[column][node]]; }
  groupText(column, group) { return this.strings[this.groups[column][group]]; }

  pairs(ties) {
    const found = new Map();
    const add = (from, to, tie) => {
      if (!found.has(from)) found.set(from, []);
      found.get(from).push({ to, kind: this.strings[tie[2]], certain: tie[3], first: from === tie[0] });
    };
    for (const tie of ties) { add(tie[0], tie[1], tie); add(tie[1], tie[0], tie); }
    return found;
  }

  buildGroups() {
    const { parent } = this.groups;
    this.inner = parent.map(() => []);
    this.members = parent.map(() => []);
    this.depth = parent.map(() => 0);
    for (let group = 1; group < parent.length; group++) {
      this.inner[parent[group]].push(group);
      this.depth[group] = this.depth[parent[group]] + 1;
    }
    this.nodes.group.forEach((group, node) => this.members[group].push(node));
    this.phase = parent.map((_, group) =>
      this.depth[group] && this.depth[group] <= 3 && PHASE.test(this.groupText("name", group)));
    this.lane = [0];
    for (let group = 1; group < parent.length; group++) {
      const outer = this.lane[parent[group]];
      this.lane[group] = this.depth[group] === 1 || (this.phase[group] && !this.phase[outer]) ? group : outer;
    }
  }

  shows(node) {
    const kind = this.nodes.kind[node];
    return kind !== MONAD && (kind !== PASSING || this.withPassing);
  }

  // After a change of what is shown at all.
  refresh() {
    this.sizes = this.groups.parent.map(() => 0);
    for (let node = 0; node < this.count; node++) {
      if (!this.shows(node)) continue;
      for (let group = this.nodes.group[node]; group >= 0; group = this.groups.parent[group]) this.sizes[group]++;
    }
    this.resolve();
  }

  // -- lines between what is shown -------------------------------------------------------------------

  // Through what is hidden: a Load or Depend stands for its first operand, a TupleGetItem of a
  // MakeTuple for that item, any other for all that it packs; UpdateState passes no value on.
  resolve() {
    const known = new Map();
    const active = new Set();
    const sources = (node, depth) => {
      if (this.shows(node)) return [node];
      if (this.nodes.kind[node] === MONAD) return [];
      if (known.has(node)) return known.get(node);
      if (active.has(node) || depth > 4000) return [];
      active.add(node);
      const op = this.text("op", node);
      const own = this.edges[node];
      const found = new Set();
      const pick = this.nodes.pick[node];
      const packed = pick >= 0 ? this.packed(own[0]) : null;
      if (packed !== null) {
        for (let at = 0; at < this.edges[packed].length; at += 3) {
          if (this.edges[packed][at + 1] === pick) for (const source of sources(this.edges[packed][at], depth + 1)) found.add(source);
        }
      } else if (op !== "UpdateState") {
        const first = op === "Load" || op === "Depend";
        for (let at = 0; at < own.length; at += 3) {
          if (!first || own[at + 1] === 0) for (const source of sources(own[at], depth + 1)) found.add(source);
        }
      }
      active.delete(node);
      const list = [...found];
      known.set(node, list);
      return list;
    };
    this.inputs = new Array(this.count);
    this.outputs = Array.from({ length: this.count }, () => []);
    for (let node = 0; node < this.count; node++) {
      const own = (this.inputs[node] = []);
      if (!this.shows(node)) continue;
      for (let at = 0; at < this.edges[node].length; at += 3) {
        const [from, position, kind] = this.edges[node].slice(at, at + 3);
        for (const source of sources(from, 0)) {
          if (source === node || own.some((item) => item.node === source && item.position === position)) continue;
          own.push({ node: source, position, kind });
          this.outputs[source].push({ node, position, kind });
        }
      }
    }
    for (const [from, to, word] of this.joined) {
      this.inputs[to].push({ node: from, position: -1, kind: 0, word: this.strings[word] });
      this.outputs[from].push({ node: to, position: -1, kind: 0, word: this.strings[word] });
    }
  }

  // The hidden MakeTuple behind a value, or null.
  packed(node) {
    for (let step = 0; step < 64 && node !== undefined; step++) {
      const op = this.text("op", node);
      if (op === "MakeTuple" || op === "MakeList") return this.shows(node) ? null : node;
      if (op !== "Depend" || this.shows(node)) return null;
      node = this.edges[node][0];
    }
    return null;
  }

  // -- what is open ------------------------------------------------------------------------------------

  // Opens groups from the outside, those with the fewest parts first, while the boxes stay few; the
  // optimizer, which has much to show and little to tell, after the others.
  openSome(most) {
    this.open = new Set([0]);
    let boxes = this.partsOf(0);
    for (let deep = 0, changed = true; changed && deep < 12; deep++) {
      changed = false;
      const closed = this.visibleGroups().filter((group) => !this.open.has(group));
      const late = (group) => this.phase[this.lane[group]] && /^(optimizer|other)/.test(this.groupText("name", this.lane[group]));
      closed.sort((a, b) => late(a) - late(b) || this.depth[a] - this.depth[b] || this.partsOf(a) - this.partsOf(b));
      for (const group of closed) {
        const parts = this.partsOf(group);
        if (boxes + parts - 1 > most) continue;
        this.open.add(group);
        boxes += parts - 1;
        changed = true;
      }
    }
  }

  partsOf(group) {
    const groups = this.inner[group].filter((inner) => this.sizes[inner]).length;
    return groups + this.members[group].filter((node) => this.shows(node)).length;
  }

  // How many boxes are drawn, open groups not counted.
  boxes() {
    const open = this.visibleGroups().filter((group) => this.open.has(group));
    return open.reduce((sum, group) => sum + this.partsOf(group) - 1, this.partsOf(0));
  }

  visibleGroups() {
    const found = [];
    const pending = [0];
    while (pending.length) {
      const group = pending.pop();
      for (const inner of this.inner[group]) {
        if (!this.sizes[inner]) continue;
        found.push(inner);
        if (this.open.has(inner)) pending.push(inner);
      }
    }
    return found;
  }

  toggle(group) {
    if (!this.open.delete(group)) this.open.add(group);
    else for (const inner of this.below(group)) this.open.delete(inner);
  }

  below(group) {
    const found = [];
    const pending = [...this.inner[group]];
    while (pending.length) {
      const inner = pending.pop();
      found.push(inner);
      pending.push(...this.inner[inner]);
    }
    return found;
  }

  reveal(node) {
    for (let group = this.nodes.group[node]; group >= 0; group = this.groups.parent[group]) this.open.add(group);
  }

  // The box that a member is seen in: itself, or ~group for the closed group around it.
  boxOf(node) {
    let found = node;
    for (let group = this.nodes.group[node]; group > 0; group = this.groups.parent[group]) {
      if (!this.open.has(group)) found = ~group;
    }
    return found;
  }

  parentOf(box) { return box >= 0 ? this.nodes.group[box] : this.groups.parent[~box]; }

  // -- the picture -------------------------------------------------------------------------------------

  // Boxes, open groups and lines with places; `measure` gives the size of a box.
  picture(measure) {
    const lines = this.lines();
    const levels = new Map();
    const level = (group) => {
      if (!levels.has(group)) levels.set(group, { group, children: [], number: new Map(), ports: new Map(), edges: new Map() });
      return levels.get(group);
    };
    this.collect(0, level);
    for (const line of lines) this.chain(line, level);
    for (const each of levels.values()) {
      breakCycles(each);
      if (this.runsUp(each.group)) for (const pair of each.pairs?.values() ?? []) pair.back = !pair.back;
    }
    for (const line of lines) this.lead(line, level);
    const sizes = new Map();
    const order = [...levels.values()].sort((a, b) => this.depth[b.group] - this.depth[a.group]);
    for (const each of order) this.arrange(each, sizes, measure);
    return this.absolute(levels, sizes, lines);
  }

  collect(group, level) {
    const pending = [group];
    while (pending.length) {
      const next = pending.pop();
      const own = level(next);
      const add = (box, first) => own.children.push({ box, first });
      for (const node of this.members[next]) if (this.shows(node)) add(node, node);
      for (const inner of this.inner[next]) {
        if (!this.sizes[inner]) continue;
        add(~inner, this.firstOf(inner));
        if (this.open.has(inner)) pending.push(inner);
      }
      own.children.sort((a, b) => a.first - b.first);
      own.children.forEach((child, index) => own.number.set(child.box, index));
    }
  }

  firstOf(group) {
    this.firsts ??= new Map();
    if (!this.firsts.has(group)) {
      let first = Infinity;
      for (const node of this.members[group]) first = Math.min(first, node);
      for (const inner of this.inner[group]) first = Math.min(first, this.firstOf(inner));
      this.firsts.set(group, first);
    }
    return this.firsts.get(group);
  }

  // One line for all values that go from one box to another.
  lines() {
    const found = new Map();
    const boxes = new Array(this.count);
    for (let node = 0; node < this.count; node++) if (this.shows(node)) boxes[node] = this.boxOf(node);
    for (let node = 0; node < this.count; node++) {
      for (const input of this.inputs[node]) {
        const [from, to] = [boxes[input.node], boxes[node]];
        if (from === to || from === undefined) continue;
        const key = `${from} ${to}`;
        let line = found.get(key);
        if (!line) {
          line = { from, to, values: [], kind: input.kind, notes: [], word: input.word,
            far: this.lane[this.nodes.group[input.node]] !== this.lane[this.nodes.group[node]] };
          found.set(key, line);
        }
        line.values.push(input.node);
        const note = this.notes.get(`${input.node} ${node}`);
        if (note !== undefined) line.notes.push(this.strings[note]);
      }
    }
    return [...found.values()];
  }

  // Where a line runs: from its box up to the innermost group that holds both ends, and down again.
  chain(line, level) {
    const climb = (box) => {
      const found = [box];
      for (let group = this.parentOf(box); group > 0; group = this.groups.parent[group]) found.push(~group);
      return found;
    };
    const [up, down] = [climb(line.from), climb(line.to)];
    while (up.length > 1 && down.length > 1 && up.at(-1) === down.at(-1)) { up.pop(); down.pop(); }
    line.up = up;
    line.down = down;
    line.top = this.parentOf(up.at(-1));
    const own = level(line.top);
    const [a, b] = [own.number.get(up.at(-1)), own.number.get(down.at(-1))];
    line.pair = `${a} ${b}`;
    if (!own.pairs) own.pairs = new Map();
    if (!own.pairs.has(line.pair)) own.pairs.set(line.pair, { a, b, back: false });
  }

  // The backward pass runs upwards, so that each layer's gradient stands beside the layer.
  runsUp(group) {
    const lane = this.lane[group];
    return group > 0 && this.phase[lane] && this.groupText("name", lane).startsWith("backward");
  }

  phaseOrder(box) {
    return box < 0 && this.phase[~box] ? PHASE_ORDER.indexOf(this.groupText("name", ~box).split("/")[0]) : PHASE_ORDER.length;
  }

  // Phases stand side by side, and so do graphs.
  across(group) {
    const inner = this.inner[group].filter((each) => this.sizes[each]);
    return inner.length > 1 && (group === 0 || inner.filter((each) => this.phase[each]).length > 1);
  }

  // Ports on the way out of and into open groups, and the edge between them.
  lead(line, level) {
    const own = level(line.top);
    const pair = own.pairs.get(line.pair);
    const leave = (boxes, side) => {
      const ports = [];
      let pin = "";
      for (let at = 0; at + 1 < boxes.length; at++) {
        const group = level(~boxes[at + 1]);
        const key = `${boxes[at]}/${pin}/${side}`;
        let port = group.ports.get(key);
        if (!port) group.ports.set(key, (port = { key, child: group.number.get(boxes[at]), pin, side, x: 0 }));
        ports.push({ group: ~boxes[at + 1], key });
        pin = key;
      }
      return ports;
    };
    line.out = line.far ? [] : leave(line.up, pair.back ? "top" : "bottom");
    line.in = line.far ? [] : leave(line.down, pair.back ? "bottom" : "top");
    const [outPin, inPin] = [line.out.at(-1)?.key ?? "", line.in.at(-1)?.key ?? ""];
    const key = `${line.pair} ${outPin} ${inPin}`;
    let edge = own.edges.get(key);
    if (!edge) own.edges.set(key, (edge = { ...pair, outPin, inPin, key, count: 0 }));
    edge.count += line.values.length;
    line.edge = key;
  }

  // One group's layout: its children, its ports, and the lines among them.
  arrange(level, sizes, measure) {
    const boxes = level.children.map(({ box }) => {
      const size = box < 0 && this.open.has(~box) ? sizes.get(box) : measure(box);
      return { ...size, port: 0 };
    });
    const pinX = (child, pin) => {
      if (!pin) return 0;
      const box = level.children[child].box;
      return sizes.get(box).ports.get(pin).x - sizes.get(box).w / 2;
    };
    const edges = [];
    const add = (from, to, fromX, toX, weight, back) => edges.push({ from, to, fromX, toX, weight, back });
    const keys = [];
    for (const edge of level.edges.values()) {
      const weight = Math.min(3, 1 + Math.log2(edge.count) / 3);
      const [fromX, toX] = [pinX(edge.a, edge.outPin), pinX(edge.b, edge.inPin)];
      if (edge.back) add(edge.b, edge.a, toX, fromX, weight, true);
      else add(edge.a, edge.b, fromX, toX, weight, false);
      keys.push(["edge", edge.key]);
    }
    // In the order of the boxes that they lead to, so that those keep theirs.
    const ports = [...level.ports.values()].map((port) => ({ port, x: pinX(port.child, port.pin) }));
    ports.sort((a, b) => a.port.child - b.port.child || a.x - b.x);
    for (const { port, x } of ports) {
      const number = boxes.length;
      boxes.push({ w: 4, h: 0, port: port.side });
      if (port.side === "top") add(number, port.child, 0, x, 1, false);
      else add(port.child, number, x, 0, 1, false);
      port.number = number;
      keys.push(["port", port.key]);
    }
    const across = this.across(level.group);
    if (across) {
      for (const box of boxes) [box.w, box.h] = [box.h, box.w];
      for (const edge of edges) edge.fromX = edge.toX = 0;
    }
    spreadEnds(boxes, edges);
    const found = layoutLevel(boxes, edges, across ? -1 : 0);
    if (across) turn(found, boxes);
    level.row = across && (boxes.length <= MOST_IN_ROW || level.group !== 0);
    if (level.row) setInRow(found, boxes, level.children.map(({ box }) => this.phaseOrder(box)));
    level.places = found.places;
    level.sizes = boxes;
    level.routes = { edge: new Map(), port: new Map() };
    keys.forEach(([kind, key], index) => level.routes[kind].set(key, found.routes[index]));
    const ends = new Map();
    // Lines that come in from above stay right of the title.
    const title = level.group ? measure(~level.group).title + 30 : 0;
    const tops = ports.filter(({ port }) => port.side === "top").map(({ port }) => found.places[port.number].x);
    const least = tops.length ? title - Math.min(...tops) : 0;
    const inner = Math.max(found.width + 2 * PAD, title);
    const shift = Math.max((inner - found.width) / 2, least);
    const w = Math.max(inner, shift + found.width + PAD);
    level.shift = shift;
    for (const port of level.ports.values()) ends.set(port.key, { x: found.places[port.number].x + shift });
    sizes.set(~level.group, { w, h: found.height + HEAD + PAD * 1.5, ports: ends, shift });
  }

  // Everything in the coordinates of the whole.
  absolute(levels, sizes, lines) {
    const boxes = new Map();
    const origin = new Map([[0, { x: 0, y: 0 }]]);
    const place = (level) => {
      const at = origin.get(level.group);
      level.children.forEach(({ box }, index) => {
        const { w, h } = level.sizes[index];
        const middle = level.places[index];
        const found = { box, x: at.x + level.shift + middle.x - w / 2, y: at.y + middle.y - h / 2, w, h,
          open: box < 0 && this.open.has(~box), depth: this.depth[level.group] };
        boxes.set(box, found);
        if (found.open) origin.set(~box, { x: found.x, y: found.y + HEAD + PAD * 0.5 });
      });
    };
    const order = [...levels.values()].sort((a, b) => this.depth[a.group] - this.depth[b.group]);
    for (const level of order) place(level);
    const moved = (group, route) => {
      const at = origin.get(group);
      const shift = levels.get(group).shift;
      return route.map(([x, y]) => [x + at.x + shift, y + at.y]);
    };
    for (const line of lines) {
      const inRow = levels.get(line.top).row && line.far;
      line.points = inRow ? overTop(boxes.get(line.up.at(-1)), boxes.get(line.down.at(-1)))
        : this.route(line, levels, moved, boxes);
      line.across = inRow && line.points.length === 2;
    }
    const whole = sizes.get(~0);
    return { boxes, lines, width: whole.w, height: whole.h };
  }

  route(line, levels, moved, boxes) {
    const points = [];
    const join = (route, backwards) => points.push(...(backwards ? [...route].reverse() : route));
    for (const { group, key } of line.out) {
      const port = levels.get(group).ports.get(key);
      join(moved(group, levels.get(group).routes.port.get(key)), port.side === "top");
      const edge = boxes.get(~group);
      points.push([points.at(-1)[0], port.side === "top" ? edge.y : edge.y + edge.h]);
    }
    const top = levels.get(line.top);
    join(moved(line.top, top.routes.edge.get(line.edge)), top.pairs.get(line.pair).back);
    for (const { group, key } of [...line.in].reverse()) {
      const port = levels.get(group).ports.get(key);
      join(moved(group, levels.get(group).routes.port.get(key)), port.side === "bottom");
    }
    return points;
  }
}

// From top to bottom becomes from left to right.
function turn(found, boxes) {
  [found.width, found.height] = [found.height, found.width];
  for (const place of found.places) [place.x, place.y] = [place.y, place.x];
  for (const box of boxes) [box.w, box.h] = [box.h, box.w];
  for (const route of found.routes) for (const point of route) point.reverse();
}

// Boxes beside each other: phases in their order, others from left to right as they were.
function setInRow(found, boxes, phases) {
  const order = boxes.map((_, index) => index);
  order.sort((a, b) => phases[a] - phases[b] || found.places[a].x - found.places[b].x || a - b);
  let x = 0;
  for (const index of order) {
    found.places[index] = { x: x + boxes[index].w / 2, y: boxes[index].h / 2 };
    x += boxes[index].w + LANE_GAP;
  }
  found.width = x - LANE_GAP;
  found.height = Math.max(...boxes.map((box) => box.h));
}

// A line between boxes of a row: straight to the next, over the top to others.
function overTop(from, to) {
  const gap = to.x - from.x - from.w;
  if (gap > 0 && gap < LANE_GAP * 1.5) {
    const y = Math.min(from.y + from.h, to.y + to.h) - 13;
    return [[from.x + from.w, y], [to.x, y]];
  }
  const right = to.x > from.x;
  const above = from.y - 16 - Math.min(40, Math.abs(to.x - from.x) / 60);
  const start = right ? from.x + from.w - 24 : from.x + 24;
  const end = right ? to.x + 24 : to.x + to.w - 24;
  return [[start, from.y], [start, above + 8], [start + (right ? 8 : -8), above], [end - (right ? 8 : -8), above], [end, above + 8], [end, to.y]];
}

// Which lines of a group run upwards: those that close a circle, seen in printed order.
function breakCycles(level) {
  const pairs = [...(level.pairs?.values() ?? [])];
  const next = level.children.map(() => []);
  for (const pair of pairs) next[pair.a].push(pair);
  const state = level.children.map(() => 0);
  for (let start = 0; start < next.length; start++) {
    if (state[start]) continue;
    const stack = [[start, 0]];
    state[start] = 1;
    while (stack.length) {
      const top = stack.at(-1);
      const pair = next[top[0]][top[1]++];
      if (!pair) { state[top[0]] = 2; stack.pop(); continue; }
      if (state[pair.b] === 1) pair.back = true;
      else if (!state[pair.b]) { state[pair.b] = 1; stack.push([pair.b, 0]); }
    }
  }
}

// Several values that a box takes end beside each other rather than in one point.
function spreadEnds(boxes, edges) {
  const sides = new Map();
  for (const edge of edges) {
    const [end, other, offset] = edge.back ? ["from", "to", "fromX"] : ["to", "from", "toX"];
    const box = boxes[edge[end]];
    if (box.port || edge[offset]) continue;
    if (!sides.has(edge[end])) sides.set(edge[end], { box, ends: [] });
    sides.get(edge[end]).ends.push({ edge, offset, other: edge[other] });
  }
  for (const { box, ends } of sides.values()) {
    if (ends.length < 2) continue;
    ends.sort((a, b) => a.other - b.other);
    const room = Math.min(box.w * 0.6, 14 * (ends.length - 1));
    ends.forEach(({ edge, offset }, index) => { edge[offset] = (index / (ends.length - 1) - 0.5) * room; });
  }
}
