// How boxes and lines look: labels, badges, colours, legend.

const PHASES = { forward: "#77AADD", backward: "#EEDD88", recompute: "#FFAABB", optimizer: "#BBCC33", other: "#DDDDDD" };
const STAGES = ["#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00"];
const SEVERITIES = { error: "#e5534b", first: "#8a7fe0", removed: "#e5534b", warning: "#e3b341", changed: "#e3b341", added: "#57b573", good: "#57b573", info: "#8fb8ee" };
const WORST = ["error", "first", "removed", "warning", "changed", "added", "info", "good"];
const RAMP = ["#fff3cf", "#f59e5b", "#c2330c"];

const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

function bytesText(bytes) {
  for (const [unit, size] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (bytes >= size) return `${(bytes / size).toFixed(1)} ${unit}`;
  }
  return `${bytes} B`;
}

function unitText(value, unit) {
  if (unit === "bytes") return bytesText(Math.round(value));
  if (unit === "seconds") {
    for (const [name, size] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]]) if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(3))} ${name}`;
    return `${Number((value / 1e-9).toPrecision(3))} ns`;
  }
  return `${Number(value.toPrecision(4)).toLocaleString("en")}${unit ? ` ${unit}` : ""}`;
}

function rampColour(share) {
  const [from, to, part] = share < 0.5 ? [RAMP[0], RAMP[1], share * 2] : [RAMP[1], RAMP[2], share * 2 - 1];
  return `color-mix(in oklab, ${to} ${(part * 100).toFixed(0)}%, ${from})`;
}

class Look {
  constructor(model, measure) {
    this.model = model;
    this.measure = measure;
    this.labels = new Map();
    this.sums = new Map();
    this.marks = model.overlays.map((overlay) => new Map(overlay.marks.map(([node, value, severity, text]) =>
      [node, { value, severity: model.strings[severity], text: model.strings[text] }])));
    this.mode = model.overlays.length ? "overlay 0" : "op";
    this.chosen = null;
    this.near = new Set();
    this.partners = new Set();
    this.matches = new Set();
  }

  modes() {
    const found = [["op", "operator"], ["phase", "phase"]];
    if (this.model.nodes.stage.some((stage) => stage >= 0)) found.push(["stage", "pipeline stage"]);
    found.push(["bytes", "bytes of the result"]);
    this.model.overlays.forEach((overlay, index) => found.push([`overlay ${index}`, overlay.title]));
    return found;
  }

  // -- labels ------------------------------------------------------------------------------------------

  label(box) {
    if (!this.labels.has(box)) this.labels.set(box, box < 0 ? this.groupLabel(~box) : this.nodeLabel(box));
    return this.labels.get(box);
  }

  nodeLabel(node) {
    const { model } = this;
    const kind = ["operator", "weight", "input", "passing", "result", "call", "monad"][model.nodes.kind[node]];
    const type = model.text("type", node);
    const parameter = kind === "weight" || kind === "input";
    const title = parameter ? lastParts(model.text("name", node)) || model.text("id", node) : model.text("op", node);
    const under = parameter ? type : model.text("under", node) || type;
    const spoken = [model.text("id", node), parameter ? `parameter ${model.text("name", node)}` : model.text("op", node), type, model.text("under", node) && `strategy ${model.text("under", node)}`].filter(Boolean).join(", ");
    const badges = [];
    const brings = model.text("brings", node);
    if (brings) badges.push(["collectives", `⇄ ${shorten(brings, 24)}`]);
    const mark = this.worstMark([node]);
    if (["error", "first", "removed"].includes(mark?.severity)) badges.push(["bad", "!"]);
    else if (mark?.severity) badges.push([mark.severity === "warning" || mark.severity === "changed" ? "warn" : "note", { added: "+", changed: "≠", good: "✓" }[mark.severity] ?? "i"]);
    return { kind, title: shorten(title), under: shorten(under, 30), spoken, badges };
  }

  groupLabel(group) {
    const { model } = this;
    const name = model.groupText("name", group);
    const note = model.groupText("note", group);
    const sums = this.sumsOf(group);
    const badges = [];
    if (sums.collectives) badges.push(["collectives", `⇄ ${sums.collectives.toLocaleString("en")}`]);
    const found = sums.severities;
    const bad = (found.error ?? 0) + (found.first ?? 0) + (found.removed ?? 0);
    const warn = (found.warning ?? 0) + (found.changed ?? 0);
    const more = (found.added ?? 0) + (found.info ?? 0) + (found.good ?? 0);
    if (more) badges.push(["note", `+ ${more}`]);
    if (warn) badges.push(["warn", `≠ ${warn}`]);
    if (bad) badges.push(["bad", `! ${bad}`]);
    const size = counted(sums.statements, "node");
    return { kind: "group", title: shorten(name), under: note ? `${note}, ${size}` : size, badges,
      spoken: [`group ${model.groupText("path", group) || name}`, note, size, sums.collectives && counted(sums.collectives, "collective")].filter(Boolean).join(", ") };
  }

  // What a group holds, all the way down.
  sumsOf(group) {
    if (this.sums.has(group)) return this.sums.get(group);
    const { model } = this;
    const sums = { statements: 0, collectives: 0, bytes: 0, ops: new Map(), severities: {} };
    const communicates = model.classes.findIndex(([key]) => key === "communication");
    for (const inner of [group, ...model.below(group)]) {
      for (const node of model.members[inner]) {
        if (!model.shows(node)) continue;
        const kind = model.nodes.kind[node];
        if (kind === WEIGHT || kind === INPUT) continue;
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
    }
    this.sums.set(group, sums);
    return sums;
  }

  forget() { this.labels.clear(); this.sums.clear(); this.scales = null; }

  size(box) {
    const label = this.label(box);
    const title = this.measure.width(label.title, TITLE_FONT);
    const under = label.under ? this.measure.width(label.under, LINE_FONT) : 0;
    const badges = label.badges.reduce((sum, [, text]) => sum + text.length * 6.2 + 13, 0);
    return { w: Math.max(64, title + 22, under + 20, badges + 14), h: label.under ? 40 : 26, title: title + badges + 24 };
  }

  // -- colours -----------------------------------------------------------------------------------------

  nodesOf(box) {
    if (box >= 0) return [box];
    return [~box, ...this.model.below(~box)].flatMap((group) => this.model.members[group]).filter((node) => this.model.shows(node));
  }

  worstMark(nodes) {
    let best = null;
    for (const marks of this.marks) {
      for (const node of nodes) {
        const mark = marks.get(node);
        if (mark && (!best || WORST.indexOf(mark.severity) < WORST.indexOf(best.severity))) best = mark.severity ? mark : best ?? mark;
      }
    }
    return best;
  }

  fill(box, open) {
    const { model } = this;
    if (open) return null;
    if (this.mode === "op") {
      if (box < 0) return null;
      const number = model.nodes.class[box];
      return number < 0 ? null : model.classes[number][2];
    }
    if (this.mode === "phase") {
      const found = new Set(this.nodesOf(box).map((node) => model.text("phase", node)).filter((phase) => phase !== "other"));
      return found.size === 1 ? PHASES[[...found][0]] : found.size ? null : PHASES.other;
    }
    if (this.mode === "stage") {
      const found = new Set(this.nodesOf(box).map((node) => model.nodes.stage[node]).filter((stage) => stage >= 0));
      return found.size === 1 ? STAGES[[...found][0] % STAGES.length] : null;
    }
    const value = this.value(box);
    if (typeof value === "string") return SEVERITIES[value] ?? null;
    if (!value) return null;
    const { low, high } = this.scale();
    const share = high > low ? (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low)) : 1;
    return rampColour(Math.min(1, Math.max(0, share)));
  }

  // What a box is coloured by: a number, or the worst severity where the overlay has no numbers.
  value(box) {
    const nodes = this.nodesOf(box);
    if (this.mode === "bytes") return nodes.reduce((sum, node) => sum + (this.model.nodes.kind[node] === WEIGHT ? 0 : this.model.nodes.bytes[node]), 0);
    const index = Number(this.mode.split(" ")[1]);
    const overlay = this.model.overlays[index];
    const marks = nodes.map((node) => this.marks[index].get(node)).filter(Boolean);
    const values = marks.map((mark) => mark.value).filter((value) => value !== null);
    if (values.length) return overlay.total === "max" ? Math.max(...values) : values.reduce((a, b) => a + b, 0);
    return marks.map((mark) => mark.severity).filter(Boolean).sort((a, b) => WORST.indexOf(a) - WORST.indexOf(b))[0] ?? null;
  }

  // The smallest and largest value among the boxes that are drawn.
  scale() {
    if (this.scales) return this.scales;
    const values = (this.boxes ?? []).map((box) => this.value(box)).filter((value) => typeof value === "number" && value > 0);
    this.scales = { low: Math.min(...values), high: Math.max(...values) };
    return this.scales;
  }

  paint(box) {
    const classes = [];
    const open = box < 0 && this.model.open.has(~box);
    if (box === this.chosen) classes.push("chosen");
    else if (this.partners.has(box)) classes.push("partner");
    else if (this.near.has(box)) classes.push("near");
    if (this.matches.has(box)) classes.push("match");
    const mark = box >= 0 ? this.worstMark([box]) : null;
    if (mark && ["error", "first", "removed"].includes(mark.severity)) classes.push("marked");
    const fill = this.fill(box, open);
    if (!fill) classes.push("plain");
    return { fill, classes };
  }

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

  legend(picture) {
    const rows = [];
    const boxes = [...picture.boxes.values()].filter((place) => !place.open).map((place) => place.box);
    const swatch = (fill, text, kind = "") => rows.push({ fill, text, kind });
    if (this.mode === "op") {
      const there = new Set(boxes.filter((box) => box >= 0).map((box) => this.model.nodes.class[box]));
      this.model.classes.forEach(([, title, colour], number) => { if (there.has(number)) swatch(colour, title); });
    } else if (this.mode === "phase") {
      for (const [phase, colour] of Object.entries(PHASES)) swatch(colour, phase);
    } else if (this.mode === "stage") {
      [...new Set(this.model.nodes.stage.filter((stage) => stage >= 0))].sort((a, b) => a - b)
        .forEach((stage) => swatch(STAGES[stage % STAGES.length], `stage ${stage}`));
    } else {
      const { low, high } = this.scale();
      const overlay = this.model.overlays[Number(this.mode.split(" ")[1])];
      const unit = this.mode === "bytes" ? "bytes" : overlay.unit;
      if (high >= low) swatch(null, low < high ? `${unitText(low, unit)} to ${unitText(high, unit)}` : unitText(high, unit), "ramp");
      const there = new Set(this.mode === "bytes" ? [] : overlay.marks.map(([, , severity]) => this.model.strings[severity]));
      for (const severity of WORST) if (there.has(severity)) swatch(SEVERITIES[severity], severity === "first" ? "first difference" : severity);
    }
    if (boxes.some((box) => box >= 0 && this.model.nodes.kind[box] === WEIGHT)) swatch(null, "parameter", "pill");
    if (picture.lines.some((line) => line.far)) swatch(null, "between phases (ends not drawn)", "apart");
    if (picture.lines.some((line) => line.notes.length)) swatch(null, "redistribution", "rose");
    if (this.partners.size) swatch(null, "forward and backward, original and copy", "dash");
    if (boxes.some((box) => (box < 0 ? this.sumsOf(~box).collectives : this.model.nodes.brings[box]))) swatch("#ee8866", "⇄ brings collectives");
    return rows;
  }
}

// `network.blocks.0.attention.weight` is told by its last parts.
function lastParts(name) {
  const parts = name.split(".");
  return parts.slice(-2).join(".");
}
