// The dump as the page holds it: members (statements and parameters), the groups they stand in, what
// is open, and what follows from that: boxes, and the lines between them.

// What a member is, by the number that stands for it in the data.
const KINDS = ["operator", "weight", "input", "passing", "result", "call", "monad"];
const [WEIGHT, INPUT, PASSING, MONAD] = ["weight", "input", "passing", "monad"].map((kind) => KINDS.indexOf(kind));
const PHASE = /^(forward|backward|recompute|optimizer|other)(\/|$)/;
const LATE_PHASE = /^(optimizer|other)/;
const MOST_PASSED = 4000; // hidden members that one value is followed through

class Model {
  /** @param {GraphData} data */
  constructor(data) {
    this.strings = data.strings;
    this.classes = data.classes;
    this.nodes = data.nodes;
    this.edges = data.edges;
    this.groups = data.groups;
    this.overlays = data.overlays;
    this.first = data.first;
    this.joined = data.links;
    this.count = data.nodes.kind.length;
    this.open = new Set([0]);
    this.withPassing = false;
    this.byKey = new Map(data.nodes.key.map((key, node) => [this.strings[key], node]));
    this.partners = partnersOf(data.ties, this.strings);
    this.notes = new Map(data.notes.map(([from, to, text]) => [`${from} ${to}`, text]));
    const { inner, members, depth } = treeOf(data.groups.parent, data.nodes.group);
    this.inner = inner;
    this.members = members;
    this.depth = depth;
    this.phase = depth.map((level, group) =>
      level > 0 && level <= 3 && PHASE.test(this.groupText("name", group)));
    this.lane = lanesOf(data.groups.parent, depth, this.phase);
    /** @type {Map<number, number>} */
    this.firsts = new Map();
    /** @type {Operand[][]} */
    this.inputs = [];
    /** @type {Operand[][]} */
    this.outputs = [];
    /** @type {number[]} */
    this.sizes = [];
    this.refresh();
  }

  /** @param {TextColumn} column @param {number} node */
  text(column, node) { return this.strings[this.nodes[column][node]]; }

  /** @param {GroupTextColumn} column @param {number} group */
  groupText(column, group) { return this.strings[this.groups[column][group]]; }

  /** @param {number} node */
  isParameter(node) { return this.nodes.kind[node] === WEIGHT || this.nodes.kind[node] === INPUT; }

  /** @param {number} node */
  shows(node) {
    const kind = this.nodes.kind[node];
    return kind !== MONAD && (kind !== PASSING || this.withPassing);
  }

  // After a change of what is shown at all.
  refresh() {
    this.sizes = this.groups.parent.map(() => 0);
    for (let node = 0; node < this.count; node++) {
      if (!this.shows(node)) continue;
      for (const group of this.groupsAround(node)) this.sizes[group]++;
    }
    this.resolve();
  }

  // -- lines between what is shown -------------------------------------------------------------------

  // What each shown member takes and gives, whatever hidden ones lie between.
  resolve() {
    /** @type {Map<number, number[]>} */
    const known = new Map();
    /** @type {Set<number>} */
    const active = new Set();
    /** @param {number} node @param {number} depth @returns {number[]} */
    const sources = (node, depth) => {
      if (this.shows(node)) return [node];
      const before = known.get(node);
      if (before) return before;
      if (active.has(node) || depth > MOST_PASSED) return [];
      active.add(node);
      /** @type {Set<number>} */
      const all = new Set();
      for (const operand of this.passedOn(node)) {
        for (const source of sources(operand.node, depth + 1)) all.add(source);
      }
      active.delete(node);
      const list = [...all];
      known.set(node, list);
      return list;
    };
    this.inputs = Array.from({ length: this.count }, () => []);
    this.outputs = Array.from({ length: this.count }, () => []);
    for (let node = 0; node < this.count; node++) {
      if (!this.shows(node)) continue;
      for (const { node: producer, position, kind } of this.operands(node)) {
        for (const source of sources(producer, 0)) this.join(source, node, position, kind);
      }
    }
    for (const [from, to, word] of this.joined) {
      const link = { position: -1, kind: 0, word: this.strings[word] };
      this.inputs[to].push({ node: from, ...link });
      this.outputs[from].push({ node: to, ...link });
    }
  }

  /**
   * @param {number} source
   * @param {number} node
   * @param {number} position
   * @param {number} kind
   */
  join(source, node, position, kind) {
    const own = this.inputs[node];
    if (source === node || own.some((item) => item.node === source && item.position === position)) return;
    own.push({ node: source, position, kind });
    this.outputs[source].push({ node, position, kind });
  }

  /**
   * What a member takes in the dump, hidden or not.
   * @param {number} node
   */
  operands(node) {
    const own = this.edges[node];
    /** @type {Operand[]} */
    const operands = [];
    for (let start = 0; start < own.length; start += 3) {
      operands.push({ node: own[start], position: own[start + 1], kind: own[start + 2] });
    }
    return operands;
  }

  /**
   * What a hidden member stands for: a Load or Depend for its first operand, a TupleGetItem of a
   * MakeTuple for that item, any other for all that it packs; UpdateState passes no value on.
   * @param {number} node
   */
  passedOn(node) {
    const op = this.text("op", node);
    if (this.nodes.kind[node] === MONAD) return [];
    const pick = this.nodes.pick[node];
    const packed = pick >= 0 ? this.packed(this.edges[node][0]) : null;
    if (packed !== null) return this.operands(packed).filter(({ position }) => position === pick);
    if (op === "UpdateState") return [];
    const first = op === "Load" || op === "Depend";
    return this.operands(node).filter(({ position }) => !first || position === 0);
  }

  /**
   * The hidden MakeTuple behind a value, or null.
   * @param {number | undefined} node
   */
  packed(node) {
    for (let step = 0; step < 64 && node !== undefined; step++) {
      const op = this.text("op", node);
      if (op === "MakeTuple" || op === "MakeList") return this.shows(node) ? null : node;
      if (op !== "Depend" || this.shows(node)) return null;
      node = this.edges[node][0];
    }
    return null;
  }

  /**
   * One line for all values that go from one box to another.
   * @returns {Line[]}
   */
  lines() {
    /** @type {Map<string, Line>} */
    const lines = new Map();
    /** @type {number[]} */
    const boxes = new Array(this.count);
    for (let node = 0; node < this.count; node++) if (this.shows(node)) boxes[node] = this.boxOf(node);
    for (let node = 0; node < this.count; node++) {
      for (const { node: producer, kind, word } of this.inputs[node]) {
        const [from, to] = [boxes[producer], boxes[node]];
        if (from === to || from === undefined) continue;
        const far = this.lane[this.nodes.group[producer]] !== this.lane[this.nodes.group[node]];
        const line = valueOrNew(lines, `${from} ${to}`, () => ({ from, to, values: [], kind, notes: [], word, far }));
        line.values.push(producer);
        const note = this.notes.get(`${producer} ${node}`);
        if (note !== undefined) line.notes.push(this.strings[note]);
      }
    }
    return [...lines.values()];
  }

  // -- what is open ------------------------------------------------------------------------------------

  /**
   * Opens groups from the outside, those with the fewest parts first, while the boxes stay few; the
   * optimizer, which has much to show and little to tell, after the others.
   * @param {number} most
   */
  openSome(most) {
    this.open = new Set([0]);
    let boxes = this.partsOf(0);
    for (let deep = 0, changed = true; changed && deep < 12; deep++) {
      changed = false;
      const closed = this.visibleGroups().filter((group) => !this.open.has(group));
      closed.sort((a, b) => this.lateness(a) - this.lateness(b) || this.depth[a] - this.depth[b] || this.partsOf(a) - this.partsOf(b));
      for (const group of closed) {
        const parts = this.partsOf(group);
        if (boxes + parts - 1 > most) continue;
        this.open.add(group);
        boxes += parts - 1;
        changed = true;
      }
    }
  }

  /** @param {number} group */
  lateness(group) {
    const lane = this.lane[group];
    return Number(this.phase[lane] && LATE_PHASE.test(this.groupText("name", lane)));
  }

  /** @param {number} group */
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
    /** @type {number[]} */
    const visible = [];
    const pending = [0];
    for (let group = pending.pop(); group !== undefined; group = pending.pop()) {
      for (const inner of this.inner[group]) {
        if (!this.sizes[inner]) continue;
        visible.push(inner);
        if (this.open.has(inner)) pending.push(inner);
      }
    }
    return visible;
  }

  /** @param {number} group */
  toggle(group) {
    if (!this.open.delete(group)) this.open.add(group);
    else for (const inner of this.below(group)) this.open.delete(inner);
  }

  /**
   * All groups inside a group, however deep.
   * @param {number} group
   */
  below(group) {
    /** @type {number[]} */
    const below = [];
    const pending = [...this.inner[group]];
    for (let inner = pending.pop(); inner !== undefined; inner = pending.pop()) {
      below.push(inner);
      pending.push(...this.inner[inner]);
    }
    return below;
  }

  /** @param {number} node */
  reveal(node) {
    for (const group of this.groupsAround(node)) this.open.add(group);
  }

  /**
   * The box that a member is seen in: itself, or ~group for the closed group around it.
   * @param {number} node
   */
  boxOf(node) {
    let box = node;
    for (const group of this.groupsAround(node)) if (group > 0 && !this.open.has(group)) box = ~group;
    return box;
  }

  /** @param {number} box */
  parentOf(box) { return box >= 0 ? this.nodes.group[box] : this.groups.parent[~box]; }

  /**
   * From the innermost to 0, which is all of the dump.
   * @param {number} box
   */
  groupsAround(box) {
    const groups = [];
    for (let group = this.parentOf(box); group >= 0; group = this.groups.parent[group]) groups.push(group);
    return groups;
  }

  /**
   * The first member of a group.
   * @param {number} group
   * @returns {number}
   */
  firstOf(group) {
    return valueOrNew(this.firsts, group, () =>
      Math.min(...this.members[group].slice(0, 1), ...this.inner[group].map((inner) => this.firstOf(inner))));
  }
}

/**
 * @param {GraphData["ties"]} ties
 * @param {string[]} strings
 */
function partnersOf(ties, strings) {
  /** @type {Map<number, Partner[]>} */
  const partners = new Map();
  for (const [left, right, kind, certain] of ties) {
    const tie = { kind: strings[kind], certain: Boolean(certain) };
    valueOrNew(partners, left, () => []).push({ to: right, first: true, ...tie });
    valueOrNew(partners, right, () => []).push({ to: left, first: false, ...tie });
  }
  return partners;
}

/**
 * The groups and the members right inside each group, and how deep it lies.
 * @param {number[]} parent
 * @param {number[]} groups
 */
function treeOf(parent, groups) {
  /** @type {number[][]} */
  const inner = parent.map(() => []);
  /** @type {number[][]} */
  const members = parent.map(() => []);
  const depth = parent.map(() => 0);
  for (let group = 1; group < parent.length; group++) {
    inner[parent[group]].push(group);
    depth[group] = depth[parent[group]] + 1;
  }
  groups.forEach((group, node) => { members[group].push(node); });
  return { inner, members, depth };
}

/**
 * The lane of each group: the phase, or else the outermost group, that it stands in.
 * @param {number[]} parent
 * @param {number[]} depth
 * @param {boolean[]} phase
 */
function lanesOf(parent, depth, phase) {
  const lane = [0];
  for (let group = 1; group < parent.length; group++) {
    const outer = lane[parent[group]];
    lane[group] = depth[group] === 1 || (phase[group] && !phase[outer]) ? group : outer;
  }
  return lane;
}
