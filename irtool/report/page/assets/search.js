// Search among the members: words that all occur; op:, name:, scope: and id: look at that alone.

const MOST_RESULTS = 100;
/** @type {SearchField[]} */
const SEARCH_FIELDS = ["op", "name", "scope", "id"];

class Search {
  /**
   * @param {Model} model
   * @param {SearchActions} actions
   */
  constructor(model, actions) {
    this.model = model;
    this.actions = actions;
    /** @type {SearchEntry[] | null} */
    this.entries = null;
    /** @type {number[]} */
    this.nodes = [];
    this.selected = -1;
    this.input = element("input", { type: "search", placeholder: "Search name, operator, scope  ( / )", "aria-label": "Search nodes by name, operator or scope",
      role: "combobox", "aria-expanded": "false", "aria-controls": "results", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false" });
    this.list = element("ul", { class: "results", id: "results", role: "listbox", hidden: true, "aria-label": "Nodes found" });
    this.input.addEventListener("input", () => this.update());
    this.input.addEventListener("focus", () => { if (this.input.value.trim()) this.show(true); });
    this.input.addEventListener("blur", () => this.show(false));
    this.input.addEventListener("keydown", (event) => this.key(event));
  }

  /**
   * Members that match, the best first.
   * @param {string} text
   */
  find(text) {
    const { model } = this;
    this.entries ??= Array.from({ length: model.count }, (_, node) => entryOf(model, node));
    const { entries } = this;
    const words = text.toLowerCase().split(/\s+/).filter(Boolean).map(searchWord);
    const exact = words.length === 1 ? words[0].text : null;
    /** @param {number} node */
    const rank = (node) => {
      const { id, name, op } = entries[node];
      if (id === exact || name === exact) return 0;
      return op === exact ? 1 : model.shows(node) ? 2 : 3;
    };
    return entries
      .flatMap((entry, node) =>
        (model.nodes.kind[node] !== MONAD && words.every((word) => holds(entry[word.field], word.text)) ? [node] : []))
      .map((node) => ({ node, rank: rank(node) }))
      .sort((a, b) => a.rank - b.rank || a.node - b.node)
      .map(({ node }) => node);
  }

  // Looks up what the box says.
  update() {
    const text = this.input.value.trim();
    this.nodes = text ? this.find(text) : [];
    this.selected = this.nodes.length ? 0 : -1;
    this.actions.matched();
    const rows = this.nodes.slice(0, MOST_RESULTS).map((node, index) => this.row(node, index));
    const left = this.nodes.length - MOST_RESULTS;
    if (this.nodes.length > 1) rows.unshift(this.summary());
    if (left > 0) rows.push(element("li", { class: "none" }, `… ${left.toLocaleString("en")} more; add words`));
    if (text && !rows.length) rows.push(element("li", { class: "none" }, "nothing found"));
    this.list.replaceChildren(...rows);
    this.show(Boolean(text));
  }

  /** @param {number} node @param {number} index */
  row(node, index) {
    const { model } = this;
    /** @param {PointerEvent} event */
    const take = (event) => {
      event.preventDefault();
      this.take(index);
    };
    return element("li", { role: "option", id: `result-${index}`, onpointerdown: take },
      element("b", {}, `${model.text("id", node)} ${model.text("op", node)}`), ` ${model.text("name", node)}`,
      element("small", {}, model.groupText("path", model.nodes.group[node])));
  }

  // How many there are, and of which operators.
  summary() {
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const node of this.nodes) {
      const op = this.model.text("op", node) || "parameter";
      counts.set(op, (counts.get(op) ?? 0) + 1);
    }
    const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([op, count]) => `${op} ${count.toLocaleString("en")}`);
    if (counts.size > 3) most.push("…");
    return element("li", { class: "none count" }, `${this.nodes.length.toLocaleString("en")} found: ${most.join(", ")}`);
  }

  /** @param {boolean} shown */
  show(shown) {
    this.list.hidden = !shown;
    this.input.setAttribute("aria-expanded", String(shown));
    this.markSelected();
  }

  markSelected() {
    const options = [...this.list.querySelectorAll("[role=option]")];
    options.forEach((row, index) => { row.setAttribute("aria-selected", String(index === this.selected)); });
    const row = options[this.selected];
    if (row && !this.list.hidden) {
      this.input.setAttribute("aria-activedescendant", row.id);
      row.scrollIntoView({ block: "nearest" });
    } else this.input.removeAttribute("aria-activedescendant");
  }

  /** @param {number} index */
  take(index) {
    const node = this.nodes[index];
    if (node === undefined) return;
    this.show(false);
    this.actions.take(node);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Enter") this.take(Math.max(0, this.selected));
    else if (event.key === "Escape") {
      this.input.value = "";
      this.update();
      this.actions.leave();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const end = Math.min(this.nodes.length, MOST_RESULTS) - 1;
      this.selected = Math.max(0, Math.min(end, this.selected + (event.key === "ArrowDown" ? 1 : -1)));
      this.markSelected();
    }
  }
}

/**
 * @param {Model} model
 * @param {number} node
 * @returns {SearchEntry}
 */
function entryOf(model, node) {
  const [op, name, id] = [model.text("op", node), model.text("name", node), model.text("id", node)].map((text) => text.toLowerCase());
  const scope = model.groupText("path", model.nodes.group[node]).toLowerCase();
  return { op, name, id, scope, all: [op, name, id, scope].join("\n") };
}

/**
 * @param {string} word
 * @returns {{ field: SearchField | "all", text: string }}
 */
function searchWord(word) {
  const field = SEARCH_FIELDS.find((name) => word.startsWith(`${name}:`));
  return field ? { field, text: word.slice(field.length + 1) } : { field: "all", text: word };
}

/**
 * Whether a text holds a word; a number only as a whole: 17 is not in 4173, nor %1 in %12.
 * @param {string} text
 * @param {string} word
 */
function holds(text, word) {
  if (!/^%?\d+$/.test(word)) return text.includes(word);
  /** @param {string} char */
  const digit = (char) => char >= "0" && char <= "9";
  for (let start = text.indexOf(word); start >= 0; start = text.indexOf(word, start + 1)) {
    if (!digit(text[start - 1] ?? "") && !digit(text[start + word.length] ?? "")) return true;
  }
  return false;
}
