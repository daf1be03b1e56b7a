// Every page: its data, its colours, its tables.  Texts are put in as text, never as html.

const MORE_ROWS = 200;

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

async function unpacked() {
  const packed = atob(document.getElementById("data").textContent);
  const bytes = Uint8Array.from(packed, (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).json();
}

// -- colours ------------------------------------------------------------------------------------

const THEMES = [["", "as the system", "◐"], ["light", "light", "○"], ["dark", "dark", "●"]];

function remembered() {
  try { return localStorage.getItem("irtool-theme") || ""; } catch { return ""; }
}

function setTheme(index) {
  const [name, words, sign] = THEMES[index];
  const button = document.getElementById("theme");
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  button.textContent = sign;
  button.title = `Colours: ${words}`;
  button.setAttribute("aria-label", button.title);
  try { localStorage.setItem("irtool-theme", name); } catch { /* a page opened without storage */ }
}

function startTheme() {
  let chosen = Math.max(0, THEMES.findIndex(([name]) => name === remembered()));
  setTheme(chosen);
  document.getElementById("theme").addEventListener("click", () => {
    chosen = (chosen + 1) % THEMES.length;
    setTheme(chosen);
  });
}

// -- tables -------------------------------------------------------------------------------------

// A cell is [text, number to sort by or null, key of a node or null].
const collator = new Intl.Collator("en", { numeric: true });

function compareCells(left, right) {
  const empty = (cell) => (cell[0] === "" ? 1 : 0);
  if (empty(left) || empty(right)) return 0; // handled by the caller: the empty come last
  const numbers = (left[1] === null) - (right[1] === null);
  if (numbers) return numbers;
  return left[1] !== null ? left[1] - right[1] : collator.compare(left[0], right[0]);
}

class DataTable {
  constructor(place, rows, live) {
    this.place = place;
    this.rows = rows;
    this.live = live;
    this.chosen = rows;
    this.sorted = null;
    this.body = place.querySelector("tbody");
    this.heads = [...place.querySelectorAll("th")];
    this.heads.forEach((head, column) =>
      head.firstElementChild.addEventListener("click", () => this.sort(column)));
    this.texts = null;
    this.addFilter();
    this.draw();
  }

  addFilter() {
    this.count = element("output", { "aria-live": "polite" });
    this.input = element("input", {
      type: "search", placeholder: "Filter", spellcheck: "false",
      "aria-label": `Filter ${this.place.dataset.label}`, oninput: () => this.filter(),
    });
    if (this.rows.length > 4) this.place.prepend(element("div", { class: "filter" }, this.input, this.count));
    this.more = element("button", { type: "button", class: "more", onclick: () => this.draw(this.shown + MORE_ROWS) });
    this.place.append(this.more);
  }

  // Rows that hold every word, in any column.
  filter() {
    this.texts ??= this.rows.map((row) => row.map((cell) => cell[0]).join("\n").toLowerCase());
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.chosen = this.rows.filter((_, index) => words.every((word) => this.texts[index].includes(word)));
    this.order();
    this.draw();
  }

  // First ascending, then descending, then as it was.
  sort(column) {
    const [last, down] = this.sorted ?? [];
    this.sorted = last !== column ? [column, false] : down ? null : [column, true];
    this.heads.forEach((head, index) => head.setAttribute("aria-sort",
      this.sorted?.[0] !== index ? "none" : this.sorted[1] ? "descending" : "ascending"));
    this.filter();
  }

  order() {
    if (!this.sorted) return;
    const [column, down] = this.sorted;
    const sign = down ? -1 : 1;
    this.chosen = [...this.chosen].sort((a, b) => {
      const [left, right] = [a[column], b[column]];
      return (left[0] === "") - (right[0] === "") || sign * compareCells(left, right);
    });
  }

  draw(count = MORE_ROWS) {
    this.shown = Math.min(count, this.chosen.length);
    const kinds = this.heads.map((head) => head.className);
    this.body.replaceChildren(...this.chosen.slice(0, this.shown).map((row) =>
      element("tr", {}, ...row.map((cell, index) =>
        element("td", { class: kinds[index] }, cell[2] === null ? cell[0] : this.link(cell))))));
    const left = this.chosen.length - this.shown;
    this.more.hidden = !left;
    this.more.textContent = `${left.toLocaleString("en")} more`;
    this.count.textContent = this.chosen.length === this.rows.length
      ? `${this.rows.length.toLocaleString("en")} rows`
      : `${this.chosen.length.toLocaleString("en")} of ${this.rows.length.toLocaleString("en")} rows`;
  }

  link([text, , key]) {
    return nodeLink(element("span", { class: "link", "data-node": key }, text), this.live);
  }
}

// A text that shows its node in the graph, where the graph has that node.
function nodeLink(span, live) {
  const key = span.dataset.node;
  if (!live?.has(key)) return span;
  const show = () => live.show(key);
  span.classList.add("live");
  span.setAttribute("role", "link");
  span.tabIndex = 0;
  span.addEventListener("click", show);
  span.addEventListener("keydown", (event) => { if (event.key === "Enter") show(); });
  return span;
}

// -- pictures -----------------------------------------------------------------------------------

// A picture zooms by the wheel once it has the focus (with Ctrl at once), moves by drag, and is whole
// again after a double click or 0.
function zoomable(figure) {
  const svg = figure.querySelector("svg[viewBox]");
  if (!svg) return;
  const whole = svg.getAttribute("viewBox").split(/[\s,]+/).map(Number);
  let [x, y, w, h] = whole;
  const show = (...next) => {
    w = Math.min(whole[2], Math.max(whole[2] / 200, next[2]));
    h = w * whole[3] / whole[2];
    x = Math.min(whole[0] + whole[2] - w, Math.max(whole[0], next[0]));
    y = Math.min(whole[1] + whole[3] - h, Math.max(whole[1], next[1]));
    svg.setAttribute("viewBox", [x, y, w, h].join(" "));
  };
  const zoom = (factor, across = 0.5, down = 0.5) => show(x + w * across * (1 - factor), y + h * down * (1 - factor), w * factor);
  const part = (event) => {
    const { left, top, width, height } = svg.getBoundingClientRect();
    return [(event.clientX - left) / width, (event.clientY - top) / height];
  };
  figure.title = "Click, then the wheel zooms and a drag moves; a double click shows all";
  figure.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== figure) return;
    event.preventDefault();
    zoom(Math.exp(event.deltaY * 0.0016), ...part(event));
  }, { passive: false });
  svg.addEventListener("pointermove", (event) => {
    if (!event.buttons || w === whole[2]) return;
    const { width } = svg.getBoundingClientRect();
    show(x - event.movementX * w / width, y - event.movementY * w / width, w);
  });
  figure.addEventListener("dblclick", () => show(...whole));
  const acts = {
    "+": () => zoom(1 / 1.3), "=": () => zoom(1 / 1.3), "-": () => zoom(1.3), 0: () => show(...whole),
    ArrowLeft: () => show(x - w / 10, y, w), ArrowRight: () => show(x + w / 10, y, w),
    ArrowUp: () => show(x, y - h / 10, w), ArrowDown: () => show(x, y + h / 10, w),
  };
  figure.addEventListener("keydown", (event) => {
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    if (w === whole[2] && event.key.startsWith("Arrow")) return; // the page scrolls
    event.preventDefault();
    acts[event.key]();
  });
}

async function start() {
  startTheme();
  const data = await unpacked();
  const live = data.graph ? startGraph(document.getElementById("viewer"), data.graph) : null;
  for (const place of document.querySelectorAll("[data-table]")) {
    new DataTable(place, data.tables[Number(place.dataset.table)], live);
  }
  document.querySelectorAll("figure.picture").forEach(zoomable);
  for (const span of document.querySelectorAll(".facts .link")) nodeLink(span, live);
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}
