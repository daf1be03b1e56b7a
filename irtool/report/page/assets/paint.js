// How boxes and lines look: labels, badges, colours, legend.

/** @type {Record<string, string>} */
const PHASES = { forward: "#77AADD", backward: "#EEDD88", recompute: "#FFAABB", optimizer: "#BBCC33", other: "#DDDDDD" };
const STAGES = ["#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00"];
/** @type {Record<Severity, string>} */
const SEVERITIES = { error: "#e5534b", first: "#8a7fe0", removed: "#e5534b", warning: "#e3b341", changed: "#e3b341", added: "#57b573", good: "#57b573", info: "#8fb8ee" };
/** @type {(Severity | "")[]} */
const WORST = ["error", "first", "removed", "warning", "changed", "added", "info", "good"];
const BAD = WORST.slice(0, 3);
/** @type {Partial<Record<Severity, string>>} */
const SEVERITY_SIGNS = { added: "+", changed: "≠", good: "✓" };
const [PALE, MIDDLE, DEEP] = ["#fff3cf", "#f59e5b", "#c2330c"];
/** @type {[unit: string, size: number][]} */
const BYTE_UNITS = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
/** @type {[unit: string, size: number][]} */
const TIME_UNITS = [["s", 1], ["ms", 1e-3], ["µs", 1e-6]];

/** @param {number} number @param {string} noun */
const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/** @param {number} bytes */
function bytesText(bytes) {
  for (const [unit, size] of BYTE_UNITS) {
    if (bytes >= size) return `${(bytes / size).toFixed(1)} ${unit}`;
  }
  return `${bytes} B`;
}

/** @param {number} value @param {string} unit */
function unitText(value, unit) {
  if (unit === "bytes") return bytesText(Math.round(value));
  if (unit === "seconds") {
    for (const [name, size] of TIME_UNITS) if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(3))} ${name}`;
    return `${Number((value / 1e-9).toPrecision(3))} ns`;
  }
  return `${Number(value.toPrecision(4)).toLocaleString("en")}${unit ? ` ${unit}` : ""}`;
}

/** @param {number} share */
function rampColour(share) {
  const [from, to, part] = share < 0.5 ? [PALE, MIDDLE, share * 2] : [MIDDLE, DEEP, share * 2 - 1];
  return `color-mix(in oklab, ${to} ${(part * 100).toFixed(0)}%, ${from})`;
}

/**
 * `network.blocks.0.attention.weight` is told by its last parts.
 * @param {string} name
 */
function lastParts(name) {
  return name.split(".").slice(-2).join(".");
}

class Look {
  /**
   * @param {Model} model
   * @param {Measure} measure
   */
  constructor(model, measure) {
    this.model = model;
    this.measure = measure;
    /** @type {Map<number, Label>} */
    this.labels = new Map();
    /** @type {Map<number, Sums>} */
    this.sums = new Map();
    this.marks = model.overlays.map(({ marks }) => marksOf(marks, model.strings));
    this.mode = model.overlays.length ? "overlay 0" : "op";
    /** @type {number | null} */
    this.chosen = null;
    /** @type {Set<number>} */
    this.near = new Set();
    /** @type {Set<number>} */
    this.partners = new Set();
    /** @type {Set<number>} */
    this.matches = new Set();
    /** @type {number[]} */
    this.boxes = [];
    /** @type {{ low: number, high: number } | null} */
    this.scales = null;
  }

  // What boxes can be coloured by: key and words.
  modes() {
    const modes = [["op", "operator"], ["phase", "phase"]];
    if (this.model.nodes.stage.some((stage) => stage >= 0)) modes.push(["stage", "pipeline stage"]);
    modes.push(["bytes", "bytes of the result"]);
    this.model.overlays.forEach((overlay, index) => { modes.push([`overlay ${index}`, overlay.title]); });
    return modes;
  }

  // Number of the overlay that boxes are coloured by.
  overlay() { return Number(this.mode.split(" ")[1]); }

  // -- labels ------------------------------------------------------------------------------------------

  /** @param {number} box */
  label(box) {
    return valueOrNew(this.labels, box, () => (box < 0 ? this.groupLabel(~box) : this.nodeLabel(box)));
  }

  /**
   * @param {number} node
   * @returns {Label}
   */
  nodeLabel(node) {
    const { model } = this;
    const [id, op, name, type, strategy] = [model.text("id", node), model.text("op", node), model.text("name", node), model.text("type", node), model.text("under", node)];
    const parameter = model.isParameter(node);
    const spoken = [id, parameter ? `parameter ${name}` : op, type, strategy && `strategy ${strategy}`];
    return {
      kind: KINDS[model.nodes.kind[node]], title: shorten(parameter ? lastParts(name) || id : op),
      under: shorten(parameter ? type : strategy || type, 30), spoken: spoken.filter(Boolean).join(", "),
      badges: this.nodeBadges(node),
    };
  }

  /**
   * @param {number} node
   * @returns {Badge[]}
   */
  nodeBadges(node) {
    /** @type {Badge[]} */
    const badges = [];
    const brings = this.model.text("brings", node);
    if (brings) badges.push(["collectives", `⇄ ${shorten(brings, 24)}`]);
    const severity = this.worstMark([node])?.severity;
    if (!severity) return badges;
    if (BAD.includes(severity)) badges.push(["bad", "!"]);
    else badges.push([severity === "warning" || severity === "changed" ? "warn" : "note", SEVERITY_SIGNS[severity] ?? "i"]);
    return badges;
  }

  /**
   * @param {number} group
   * @returns {Label}
   */
  groupLabel(group) {
    const { model } = this;
    const name = model.groupText("name", group);
    const note = model.groupText("note", group);
    const sums = this.sumsOf(group);
    const size = counted(sums.statements, "node");
    const spoken = [`group ${model.groupText("path", group) || name}`, note, size, sums.collectives && counted(sums.collectives, "collective")];
    return {
      kind: "group", title: shorten(name), under: note ? `${note}, ${size}` : size,
      spoken: spoken.filter(Boolean).join(", "), badges: groupBadges(sums),
    };
  }

  /** @param {number} group */
  sumsOf(group) { return valueOrNew(this.sums, group, () => this.sumUp(group)); }

  /**
   * @param {number} group
   * @returns {Sums}
   */
  sumUp(group) {
    const { model } = this;
    /** @type {Sums} */
    const sums = { statements: 0, collectives: 0, bytes: 0, ops: new Map(), severities: {} };
    const communicates = model.classes.findIndex(([key]) => key === "communication");
    for (const node of this.nodesOf(~group)) {
      if (model.isParameter(node)) continue;
      sums.statements++;
      sums.bytes += model.nodes.bytes[node];
      if (model.nodes.class[node] === communicates || model.nodes.brings[node]) sums.collectives++;
      const op = model.text("op", node);
      sums.ops.set(op, (sums.ops.get(op) ?? 0) + 1);
      for (const marks of this.marks) {
        const severity = marks.get(node)?.severity;
        if (severity) sums.severities[severity] = (sums.severities[severity] ?? 0) + 1;
      }
    }
    return sums;
  }

  forget() {
    this.labels.clear();
    this.sums.clear();
    this.scales = null;
  }

  /**
   * @param {number} box
   * @returns {BoxSize}
   */
  size(box) {
    const label = this.label(box);
    const title = this.measure.width(label.title, TITLE_FONT);
    const under = label.under ? this.measure.width(label.under, LINE_FONT) : 0;
    const badges = label.badges.reduce((sum, [, text]) => sum + text.length * 6.2 + 13, 0);
    return { w: Math.max(64, title + 22, under + 20, badges + 14), h: label.under ? 40 : 26, title: title + badges + 24 };
  }

  // -- colours -----------------------------------------------------------------------------------------

  /**
   * The member that a box is, or all that a group holds.
   * @param {number} box
   */
  nodesOf(box) {
    const { model } = this;
    if (box >= 0) return [box];
    return [~box, ...model.below(~box)].flatMap((group) => model.members[group]).filter((node) => model.shows(node));
  }

  /**
   * @param {number[]} nodes
   * @returns {Mark | null}
   */
  worstMark(nodes) {
    /** @type {Mark | null} */
    let worst = null;
    for (const marks of this.marks) {
      for (const node of nodes) {
        const mark = marks.get(node);
        if (mark && (!worst || rankOf(mark) < rankOf(worst))) worst = mark;
      }
    }
    return worst;
  }

  /** @param {number} box @param {boolean} open */
  fill(box, open) {
    const { nodes, classes } = this.model;
    if (open) return null;
    if (this.mode === "op") return box < 0 ? null : classes[nodes.class[box]]?.[2] ?? null;
    if (this.mode === "phase") {
      const phases = new Set(this.nodesOf(box).map((node) => this.model.text("phase", node)).filter((phase) => phase !== "other"));
      return phases.size > 1 ? null : PHASES[[...phases][0] ?? "other"];
    }
    if (this.mode === "stage") {
      const stages = new Set(this.nodesOf(box).map((node) => nodes.stage[node]).filter((stage) => stage >= 0));
      return stages.size === 1 ? STAGES[[...stages][0] % STAGES.length] : null;
    }
    const value = this.value(box);
    if (!value) return null;
    if (typeof value === "string") return SEVERITIES[value];
    const { low, high } = this.scale();
    const share = high > low ? (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low)) : 1;
    return rampColour(Math.min(1, Math.max(0, share)));
  }

  /**
   * What a box is coloured by: a number, or the worst severity where the overlay has no numbers.
   * @param {number} box
   * @returns {number | Severity | "" | null}
   */
  value(box) {
    const nodes = this.nodesOf(box);
    const { kind, bytes } = this.model.nodes;
    if (this.mode === "bytes") return nodes.reduce((sum, node) => sum + (kind[node] === WEIGHT ? 0 : bytes[node]), 0);
    const index = this.overlay();
    const marks = nodes.flatMap((node) => this.marks[index].get(node) ?? []);
    const values = marks.flatMap(({ value }) => value ?? []);
    if (values.length) return this.model.overlays[index].total === "max" ? Math.max(...values) : values.reduce((a, b) => a + b, 0);
    return WORST.find((severity) => marks.some((mark) => mark.severity === severity)) ?? null;
  }

  // The smallest and largest value among the boxes that are drawn.
  scale() {
    if (this.scales) return this.scales;
    const values = this.boxes.map((box) => this.value(box)).filter((value) => typeof value === "number").filter((value) => value > 0);
    this.scales = { low: Math.min(...values), high: Math.max(...values) };
    return this.scales;
  }

  /** @param {number} box */
  paint(box) {
    const classes = [];
    const open = box < 0 && this.model.open.has(~box);
    if (box === this.chosen) classes.push("chosen");
    else if (this.partners.has(box)) classes.push("partner");
    else if (this.near.has(box)) classes.push("near");
    if (this.matches.has(box)) classes.push("match");
    const mark = box >= 0 ? this.worstMark([box]) : null;
    if (mark && BAD.includes(mark.severity)) classes.push("marked");
    const fill = this.fill(box, open);
    if (!fill) classes.push("plain");
    return { fill, classes };
  }

  /** @param {Line} line */
  paintLine(line) {
    const classes = [];
    if (line.far) classes.push("far");
    if (line.kind === 1) classes.push("calls");
    if (line.values.length > 3) classes.push("many");
    if (line.notes.length) classes.push("note");
    if (line.from === this.chosen || line.to === this.chosen) classes.push("lit");
    return classes;
  }

  // -- legend ------------------------------------------------------------------------------------------

  /** @param {Picture} picture */
  legend(picture) {
    const { nodes } = this.model;
    const boxes = [...picture.boxes.values()].filter((place) => !place.open).map((place) => place.box);
    const swatches = this.legendOfMode(boxes);
    /** @param {boolean} present @param {string | null} fill @param {string} text @param {string} kind */
    const add = (present, fill, text, kind) => { if (present) swatches.push({ fill, text, kind }); };
    add(boxes.some((box) => box >= 0 && nodes.kind[box] === WEIGHT), null, "parameter", "pill");
    add(picture.lines.some((line) => line.far), null, "between phases (ends not drawn)", "apart");
    add(picture.lines.some((line) => line.notes.length), null, "redistribution", "rose");
    add(this.partners.size > 0, null, "forward and backward, original and copy", "dash");
    add(boxes.some((box) => (box < 0 ? this.sumsOf(~box).collectives : nodes.brings[box])), "#ee8866", "⇄ brings collectives", "");
    return swatches;
  }

  /**
   * @param {number[]} boxes
   * @returns {Swatch[]}
   */
  legendOfMode(boxes) {
    const { classes, nodes } = this.model;
    if (this.mode === "op") {
      const drawn = new Set(boxes.filter((box) => box >= 0).map((box) => nodes.class[box]));
      return classes.filter((_, number) => drawn.has(number)).map(([, text, fill]) => ({ fill, text, kind: "" }));
    }
    if (this.mode === "phase") return Object.entries(PHASES).map(([text, fill]) => ({ fill, text, kind: "" }));
    if (this.mode === "stage") {
      const stages = [...new Set(nodes.stage.filter((stage) => stage >= 0))].sort((a, b) => a - b);
      return stages.map((stage) => ({ fill: STAGES[stage % STAGES.length], text: `stage ${stage}`, kind: "" }));
    }
    if (this.mode === "bytes") return this.ramp("bytes");
    const index = this.overlay();
    const severities = new Set([...this.marks[index].values()].map(({ severity }) => severity));
    const marked = WORST.flatMap((severity) => (severity && severities.has(severity) ? [severity] : []));
    return [...this.ramp(this.model.overlays[index].unit), ...marked.map((severity) => (
      { fill: SEVERITIES[severity], text: severity === "first" ? "first difference" : severity, kind: "" }))];
  }

  /**
   * What the colours of numbers stand for, where there are any.
   * @param {string} unit
   * @returns {Swatch[]}
   */
  ramp(unit) {
    const { low, high } = this.scale();
    if (high < low) return [];
    const text = low < high ? `${unitText(low, unit)} to ${unitText(high, unit)}` : unitText(high, unit);
    return [{ fill: null, text, kind: "ramp" }];
  }
}

/**
 * @param {OverlayData["marks"]} marks
 * @param {string[]} strings
 * @returns {Map<number, Mark>}
 */
function marksOf(marks, strings) {
  return new Map(marks.map(([node, value, severity, text]) =>
    [node, { value, severity: /** @type {Mark["severity"]} */ (strings[severity]), text: strings[text] }]));
}

/**
 * 0 for the worst; a number without a severity comes after all that have one.
 * @param {Mark} mark
 */
function rankOf({ severity }) {
  return severity ? WORST.indexOf(severity) : WORST.length;
}

/**
 * @param {Sums} sums
 * @returns {Badge[]}
 */
function groupBadges({ collectives, severities }) {
  /** @param {Severity[]} kinds */
  const count = (...kinds) => kinds.reduce((sum, kind) => sum + (severities[kind] ?? 0), 0);
  /** @type {[kind: string, sign: string, number: number][]} */
  const badges = [
    ["collectives", "⇄", collectives],
    ["note", "+", count("added", "info", "good")],
    ["warn", "≠", count("warning", "changed")],
    ["bad", "!", count("error", "first", "removed")],
  ];
  return badges.filter(([, , number]) => number).map(([kind, sign, number]) =>
    [kind, `${sign} ${kind === "collectives" ? number.toLocaleString("en") : number}`]);
}
