// Every page: its data, its colours, its tables.  Texts are put in as text, never as html.

const MORE_ROWS = 200;

/**
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Attributes} [attributes]
 * @param {...(Node | string | null)} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of /** @type {[string, Attributes[keyof Attributes]][]} */ (Object.entries(attributes))) {
    if (typeof value === "function") node.addEventListener(key.slice(2), /** @type {EventListener} */ (value));
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

/**
 * @template {Element} Kind
 * @param {ParentNode} place
 * @param {string} selector
 * @param {new () => Kind} kind
 */
function elementsOf(place, selector, kind) {
  return [...place.querySelectorAll(selector)].flatMap((node) => (node instanceof kind ? [node] : []));
}

/**
 * An element that a page is made with.
 * @template {Element} Kind
 * @param {ParentNode} place
 * @param {string} selector
 * @param {new () => Kind} kind
 */
function elementOf(place, selector, kind) {
  const node = place.querySelector(selector);
  if (node instanceof kind) return node;
  throw new Error(`the page has no ${selector}`);
}

/** @returns {Promise<PageData>} */
async function unpacked() {
  const packed = atob(elementOf(document, "#data", HTMLScriptElement).text);
  const bytes = Uint8Array.from(packed, (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).json();
}

// -- colours ------------------------------------------------------------------------------------

const THEMES = [["", "as the system", "◐"], ["light", "light", "○"], ["dark", "dark", "●"]];

function storedTheme() {
  try { return localStorage.getItem("irtool-theme") || ""; } catch { return ""; }
}

/** @param {HTMLElement} button @param {number} index */
function setTheme(button, index) {
  const [name, words, sign] = THEMES[index];
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  button.textContent = sign;
  button.title = `Colours: ${words}`;
  button.setAttribute("aria-label", button.title);
  try { localStorage.setItem("irtool-theme", name); } catch { /* a page opened without storage */ }
}

function startTheme() {
  const button = elementOf(document, "#theme", HTMLButtonElement);
  let chosen = Math.max(0, THEMES.findIndex(([name]) => name === storedTheme()));
  setTheme(button, chosen);
  button.addEventListener("click", () => {
    chosen = (chosen + 1) % THEMES.length;
    setTheme(button, chosen);
  });
}

// -- tables -------------------------------------------------------------------------------------

const collator = new Intl.Collator("en", { numeric: true });

/**
 * Numbers come before texts.
 * @param {CellData} left
 * @param {CellData} right
 */
function compareCells([leftText, leftKey], [rightText, rightKey]) {
  if (leftKey !== null && rightKey !== null) return leftKey - rightKey;
  if (leftKey === null && rightKey === null) return collator.compare(leftText, rightText);
  return leftKey === null ? 1 : -1;
}

class DataTable {
  /**
   * @param {HTMLElement} place
   * @param {CellData[][]} rows
   * @param {NodeView | null} graph
   */
  constructor(place, rows, graph) {
    this.rows = rows;
    this.graph = graph;
    this.chosen = rows;
    this.shown = 0;
    /** @type {{ column: number, down: boolean } | null} */
    this.sorted = null;
    /** @type {string[] | null} */
    this.texts = null;
    this.body = elementOf(place, "tbody", HTMLTableSectionElement);
    this.heads = [...place.querySelectorAll("th")];
    this.heads.forEach((head, column) => {
      elementOf(head, "button", HTMLButtonElement).addEventListener("click", () => this.sort(column));
    });
    this.count = element("output", { "aria-live": "polite" });
    this.input = element("input", {
      type: "search", placeholder: "Filter", spellcheck: "false",
      "aria-label": `Filter ${place.dataset.label}`, oninput: () => this.filter(),
    });
    if (rows.length > 4) place.prepend(element("div", { class: "filter" }, this.input, this.count));
    this.more = element("button", { type: "button", class: "more", onclick: () => this.draw(this.shown + MORE_ROWS) });
    place.append(this.more);
    this.draw();
  }

  // Rows that hold every word, in any column.
  filter() {
    this.texts ??= this.rows.map((row) => row.map(([text]) => text).join("\n").toLowerCase());
    const { texts } = this;
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.chosen = this.rows.filter((_, index) => words.every((word) => texts[index].includes(word)));
    this.order();
    this.draw();
  }

  /**
   * First ascending, then descending, then as it was.
   * @param {number} column
   */
  sort(column) {
    const again = this.sorted?.column === column;
    this.sorted = again && this.sorted?.down ? null : { column, down: again };
    this.heads.forEach((head, index) => {
      const direction = this.sorted?.down ? "descending" : "ascending";
      head.setAttribute("aria-sort", this.sorted?.column === index ? direction : "none");
    });
    this.filter();
  }

  // Empty cells come last.
  order() {
    if (!this.sorted) return;
    const { column, down } = this.sorted;
    const sign = down ? -1 : 1;
    this.chosen = [...this.chosen].sort((a, b) => {
      const [left, right] = [a[column], b[column]];
      return Number(left[0] === "") - Number(right[0] === "") || sign * compareCells(left, right);
    });
  }

  draw(count = MORE_ROWS) {
    this.shown = Math.min(count, this.chosen.length);
    this.body.replaceChildren(...this.chosen.slice(0, this.shown).map((row) =>
      element("tr", {}, ...row.map((cell, column) => this.cell(cell, column)))));
    const left = this.chosen.length - this.shown;
    this.more.hidden = !left;
    this.more.textContent = `${left.toLocaleString("en")} more`;
    const [chosen, all] = [this.chosen.length.toLocaleString("en"), this.rows.length.toLocaleString("en")];
    this.count.textContent = chosen === all ? `${all} rows` : `${chosen} of ${all} rows`;
  }

  /** @param {CellData} cell @param {number} column */
  cell([text, , node], column) {
    const link = node === null ? null : element("span", { class: "link", "data-node": node }, text);
    if (link) linkToNode(link, this.graph);
    return element("td", { class: this.heads[column].className }, link ?? text);
  }
}

/**
 * A text that shows its node in the graph, where the graph has that node.
 * @param {HTMLElement} span
 * @param {NodeView | null} graph
 */
function linkToNode(span, graph) {
  const key = span.dataset.node;
  if (key === undefined || !graph?.has(key)) return;
  const show = () => graph.show(key);
  span.classList.add("live");
  span.setAttribute("role", "link");
  span.tabIndex = 0;
  span.addEventListener("click", show);
  span.addEventListener("keydown", (event) => { if (event.key === "Enter") show(); });
}

// -- pictures -----------------------------------------------------------------------------------

// A picture zooms by the wheel once it has the focus (with Ctrl at once), moves by drag, and is whole
// again after a double click or 0.
class PictureZoom {
  /** @param {HTMLElement} figure @param {SVGElement} svg */
  constructor(figure, svg) {
    this.svg = svg;
    const [x, y, w, h] = (svg.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
    this.whole = { x, y, w, h };
    this.view = { x, y, w, h };
    figure.title = "Click, then the wheel zooms and a drag moves; a double click shows all";
    figure.addEventListener("wheel", (event) => {
      if (event.ctrlKey || document.activeElement === figure) this.wheel(event);
    }, { passive: false });
    svg.addEventListener("pointermove", (event) => { if (event.buttons && !this.isWhole()) this.drag(event); });
    figure.addEventListener("dblclick", () => this.showAll());
    figure.addEventListener("keydown", (event) => this.key(event));
  }

  isWhole() { return this.view.w === this.whole.w; }

  showAll() { this.show(this.whole.x, this.whole.y, this.whole.w); }

  /** @param {number} left @param {number} top @param {number} width */
  show(left, top, width) {
    const { whole } = this;
    const w = Math.min(whole.w, Math.max(whole.w / 200, width));
    const h = w * whole.h / whole.w;
    const x = Math.min(whole.x + whole.w - w, Math.max(whole.x, left));
    const y = Math.min(whole.y + whole.h - h, Math.max(whole.y, top));
    this.view = { x, y, w, h };
    this.svg.setAttribute("viewBox", [x, y, w, h].join(" "));
  }

  /**
   * @param {number} factor
   * @param {number} [across] what stays where it is, as shares of the picture's width and height
   * @param {number} [down]
   */
  zoom(factor, across = 0.5, down = 0.5) {
    const { x, y, w, h } = this.view;
    this.show(x + w * across * (1 - factor), y + h * down * (1 - factor), w * factor);
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    event.preventDefault();
    const { left, top, width, height } = this.svg.getBoundingClientRect();
    this.zoom(Math.exp(event.deltaY * 0.0016), (event.clientX - left) / width, (event.clientY - top) / height);
  }

  /** @param {PointerEvent} event */
  drag(event) {
    const { x, y, w } = this.view;
    const { width } = this.svg.getBoundingClientRect();
    this.show(x - event.movementX * w / width, y - event.movementY * w / width, w);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { x, y, w, h } = this.view;
    /** @type {Record<string, () => void>} */
    const acts = {
      "+": () => this.zoom(1 / 1.3), "=": () => this.zoom(1 / 1.3), "-": () => this.zoom(1.3), 0: () => this.showAll(),
      ArrowLeft: () => this.show(x - w / 10, y, w), ArrowRight: () => this.show(x + w / 10, y, w),
      ArrowUp: () => this.show(x, y - h / 10, w), ArrowDown: () => this.show(x, y + h / 10, w),
    };
    if (!Object.hasOwn(acts, event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (this.isWhole() && event.key.startsWith("Arrow")) return; // the page scrolls
    event.preventDefault();
    acts[event.key]();
  }
}

async function start() {
  startTheme();
  const data = await unpacked();
  const graph = data.graph ? startGraph(elementOf(document, "#viewer", HTMLElement), data.graph) : null;
  for (const place of elementsOf(document, "[data-table]", HTMLElement)) {
    new DataTable(place, data.tables[Number(place.dataset.table)], graph);
  }
  for (const figure of elementsOf(document, "figure.picture", HTMLElement)) {
    const svg = figure.querySelector("svg[viewBox]");
    if (svg instanceof SVGElement) new PictureZoom(figure, svg);
  }
  for (const span of elementsOf(document, ".facts .link", HTMLElement)) linkToNode(span, graph);
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}
