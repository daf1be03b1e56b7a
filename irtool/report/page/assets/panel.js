// The panel at the side: what is known of the chosen box.

const MOST_LISTED = 60;
const MOST_OPERATORS = 40;
/**
 * What a member's partner is to it: where it is the original, and where it is the other one.
 * @type {Record<string, [original: string, other: string]>}
 */
const PARTNER_TEXTS = {
  gradient: ["its gradient", "it is the gradient of this"],
  recompute: ["computed again", "it is a copy of this"],
};

class Panel {
  /**
   * @param {Model} model
   * @param {Look} look
   * @param {PanelActions} actions
   */
  constructor(model, look, actions) {
    this.model = model;
    this.look = look;
    this.actions = actions;
    this.element = element("aside", { class: "panel", hidden: true, "aria-label": "About the chosen box", tabindex: "-1" });
  }

  /** @param {number | null} box */
  show(box) {
    this.element.hidden = box === null;
    if (box === null) return;
    const close = element("button", { type: "button", "aria-label": "Close", title: "Close", onclick: () => this.actions.leave() }, "✕");
    const body = box >= 0 ? this.aboutNode(box) : this.aboutGroup(~box);
    this.element.replaceChildren(element("div", { class: "head" }, element("h2", {}, this.titleOf(box)), close), this.pathTo(box), ...body);
    this.element.scrollTop = 0;
  }

  // Into the panel: to its first link, or else its first button.
  focus() {
    const { element } = this;
    const target = element.querySelector(".go") ?? element.querySelector("button");
    if (target instanceof HTMLElement) target.focus();
  }

  /** @param {number} node */
  nameOf(node) { return this.model.text(this.model.isParameter(node) ? "name" : "op", node); }

  /** @param {number} box */
  titleOf(box) {
    return box < 0 ? this.model.groupText("name", ~box) : `${this.model.text("id", box)}  ${this.nameOf(box)}`;
  }

  /**
   * The groups around a box, from the outside.
   * @param {number} box
   */
  pathTo(box) {
    const groups = this.model.groupsAround(box).slice(0, -1).reverse();
    const parts = groups.map((group) =>
      element("button", { type: "button", onclick: () => this.actions.choose(~group, "centre") }, this.model.groupText("name", group)));
    return element("div", { class: "way" }, ...parts.flatMap((part, index) => (index ? [" / ", part] : [part])));
  }

  // -- a node ------------------------------------------------------------------------------------------

  /** @param {number} node */
  aboutNode(node) {
    const { model } = this;
    const inputs = model.inputs[node].map((operand) => this.link(operand.node, this.inputText(operand, node)));
    const users = model.outputs[node].map((operand) => this.link(operand.node, this.userText(operand, node)));
    const tied = [...(model.partners.get(node) ?? [])].sort((a, b) => Number(model.shows(b.to)) - Number(model.shows(a.to)));
    const partners = tied.map((partner) => this.link(partner.to, partnerText(partner)));
    return [
      ...this.marksOf(node), ...list("Partners", partners), ...list("Takes", inputs), ...list("Used by", users),
      element("h3", {}, "Facts"), factList(this.factsOf(node)),
    ];
  }

  /**
   * A link to another node, and how that one is related.
   * @param {number} node
   * @param {string} relation
   */
  link(node, relation) {
    const { model } = this;
    const show = () => this.actions.visit(node);
    const button = element("button", { type: "button", class: "go", "data-node": model.text("key", node), onclick: show }, `${model.text("id", node)} ${this.nameOf(node)}`);
    return element("li", {}, button, element("small", {}, `  ${relation}`));
  }

  /** @param {Operand} operand @param {number} node */
  inputText({ node: producer, position, kind, word }, node) {
    const type = this.model.text("type", producer);
    return `${word ?? (position >= 0 ? `operand ${position}` : "called")}${kind ? ", by call" : ""}${type ? `, ${type}` : ""}${this.noteOn(producer, node)}`;
  }

  /** @param {Operand} operand @param {number} node */
  userText({ node: user, position, word }, node) {
    return `${word ?? (position >= 0 ? `as operand ${position}` : "")}${this.noteOn(node, user)}`;
  }

  /** @param {number} from @param {number} to */
  noteOn(from, to) {
    const note = this.model.notes.get(`${from} ${to}`);
    return note === undefined ? "" : `, redistribution ${this.model.strings[note]}`;
  }

  /**
   * Labels and values.
   * @param {number} node
   */
  factsOf(node) {
    const { model } = this;
    const texts = model.nodes.facts[node].map((text) => model.strings[text]);
    const facts = texts.flatMap((label, index) => (index % 2 ? [] : [[label, texts[index + 1]]]));
    if (model.isParameter(node)) return facts;
    return [["name", model.text("name", node) || "none"], ["line", model.nodes.line[node].toLocaleString("en")], ...facts];
  }

  /** @param {number} node */
  marksOf(node) {
    return this.model.overlays.flatMap(({ title, unit }, index) => {
      const mark = this.look.marks[index].get(node);
      if (!mark) return [];
      const value = mark.value === null ? "" : unitText(mark.value, unit);
      const words = [value, mark.text].filter(Boolean).join(" ") || mark.severity;
      return [element("div", { class: `mark ${mark.severity || "plain"}` }, `${title}: ${words}`)];
    });
  }

  // -- a group -----------------------------------------------------------------------------------------

  /** @param {number} group */
  aboutGroup(group) {
    const { model, actions } = this;
    const sums = this.look.sumsOf(group);
    const open = model.open.has(group);
    /** @param {string} text @param {() => void} act */
    const button = (text, act) => element("button", { type: "button", onclick: act }, text);
    const note = model.groupText("note", group);
    const facts = [
      ["path", model.groupText("path", group)], ["holds", `${counted(sums.statements, "node")}${note ? `, ${note}` : ""}`],
      ["results", bytesText(sums.bytes)],
    ];
    if (sums.collectives) facts.push(["collectives", sums.collectives.toLocaleString("en")]);
    const ops = [...sums.ops].sort((a, b) => b[1] - a[1]).slice(0, MOST_OPERATORS);
    return [
      element("div", { class: "act" }, button(open ? "Collapse" : "Expand", () => actions.toggle(group)),
        open ? button("Expand by one step", () => actions.expandStep(group)) : null, button("Zoom to it", () => actions.zoomTo(group))),
      factList(facts), element("h3", {}, "Operators"), factList(ops.map(([op, count]) => [op, count.toLocaleString("en")])),
    ];
  }
}

/**
 * @param {string} title
 * @param {HTMLElement[]} items
 */
function list(title, items) {
  if (!items.length) return [];
  const left = items.length - MOST_LISTED;
  const more = left > 0 ? element("li", {}, element("small", {}, `… ${left.toLocaleString("en")} more`)) : null;
  return [element("h3", {}, `${title} (${items.length.toLocaleString("en")})`), element("ul", {}, ...items.slice(0, MOST_LISTED), more)];
}

/** @param {string[][]} facts labels and values */
function factList(facts) {
  return element("dl", { class: "facts" }, ...facts.flatMap(([label, value]) => [element("dt", {}, label), element("dd", {}, value)]));
}

/** @param {Partner} partner */
function partnerText({ kind, certain, first }) {
  const [original, other] = PARTNER_TEXTS[kind] ?? ["updated here", "updates this"];
  return `${first ? original : other}${certain ? "" : ", probably"}`;
}
