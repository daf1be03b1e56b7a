// The graph on the page: toolbar, search, panel, mouse and keyboard.

const READABLE = 0.85;
const SMALLEST = 0.55; // what a picture that is wider than the window begins with
const FIRST_BOXES = 70;
const MOST_RESULTS = 100;
const MOST_MARKED = 5000;
const MOST_FIRST = 12;
const MOST_BOXES = 1000;
const MOST_LISTED = 60;
const KEYS = [
  ["/", "search; ↑ ↓ choose, Enter shows"],
  ["↑ ↓", "along a line to the box above or below"],
  ["← →", "to the box beside"],
  ["Enter, Space", "open or close a group; read on about a node"],
  ["Esc", "to the group around; close what is open"],
  ["c", "collapse the group around"],
  ["e", "open all that is closed in the group, by one step"],
  ["+ −", "larger, smaller"],
  ["f or 0", "all in sight"],
  ["z", "zoom to the chosen box"],
  ["Backspace", "back to the box before"],
  ["p", "show or hide Load, Depend, MakeTuple …"],
  ["?", "these keys"],
];

function startGraph(place, data) {
  const began = performance.now();
  const viewer = new Viewer(place, new Model(data));
  document.documentElement.dataset.drawn = String(Math.round(performance.now() - began));
  return { has: (key) => viewer.model.byKey.has(key), show: (key) => viewer.visit(viewer.model.byKey.get(key), true), viewer };
}

class Viewer {
  constructor(place, model) {
    this.place = place;
    this.model = model;
    this.look = new Look(model, new Measure());
    this.past = [];
    this.build();
    model.openSome(FIRST_BOXES);
    const marked = this.marked();
    for (const node of marked) model.reveal(node);
    this.redraw();
    this.begin();
    this.listen();
    this.visitAddress();
  }

  // -- the page ----------------------------------------------------------------------------------------

  build() {
    const top = document.querySelector(".top");
    document.documentElement.style.setProperty("--top", `${top.getBoundingClientRect().height}px`);
    this.search = element("input", { type: "search", placeholder: "Search name, operator, scope  ( / )", "aria-label": "Search nodes by name, operator or scope",
      role: "combobox", "aria-expanded": "false", "aria-controls": "results", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false" });
    this.results = element("ul", { class: "results", id: "results", role: "listbox", hidden: true, "aria-label": "Nodes found" });
    this.colour = element("select", { "aria-label": "Colour by", onchange: () => this.colourBy(this.colour.value) },
      ...this.look.modes().map(([value, text]) => element("option", { value }, text)));
    this.colour.value = this.look.mode;
    this.passing = element("input", { type: "checkbox", onchange: () => this.showPassing(this.passing.checked) });
    const button = (text, label, act) => element("button", { type: "button", title: label, "aria-label": label, onclick: act }, text);
    const tools = element("div", { class: "tools", role: "toolbar", "aria-label": "Graph" },
      element("div", { class: "find" }, this.search, this.results),
      element("label", {}, "colour by", this.colour),
      element("label", { title: "Load, Depend, UpdateState, MakeTuple and TupleGetItem" }, this.passing, "passing nodes"),
      element("div", { class: "end" },
        button("Collapse all", "Collapse all groups", () => this.collapseAll()),
        button("−", "Smaller", () => this.zoom(1 / 1.3)), button("+", "Larger", () => this.zoom(1.3)),
        button("Fit", "All in sight", () => this.fit(true)), button("?", "Keys", () => this.showKeys())));
    this.svg = shape("svg", { class: "canvas", tabindex: 0, role: "application", "aria-roledescription": "graph",
      "aria-label": "Graph. Arrow keys follow edges, Enter opens groups, slash searches, question mark lists all keys." });
    this.panel = element("aside", { class: "panel", hidden: true, "aria-label": "About the chosen box", tabindex: "-1" });
    this.legendList = element("ul", { class: "legend", "aria-label": "Legend" });
    this.status = element("div", { class: "status", "aria-live": "polite" });
    this.stage = element("div", { class: "stage" }, element("div", { class: "canvas-place" }), this.panel, this.status);
    this.stage.firstChild.replaceWith(this.svg);
    this.place.replaceChildren(tools, this.legendList, this.stage);
    this.drawing = new Drawing(this.svg, this.look);
    this.map = new PictureMap(this.stage, (x, y) => {
      const { width, height } = this.room();
      const { scale } = this.drawing.view;
      this.look_at({ x: width / 2 - x * scale, y: height / 2 - y * scale, scale }, false);
    });
    this.drawing.moved = (view, room) => this.map.look(view, room);
  }

  // Lays out and draws again; `keep` is a box that stays where it is on the screen.
  redraw(keep = null) {
    const before = keep === null ? null : this.drawing.picture?.boxes.get(keep);
    this.picture = this.model.picture((box) => this.look.size(box));
    this.look.boxes = [...this.picture.boxes.values()].filter((place) => !place.open).map((place) => place.box);
    this.look.scales = null;
    const after = keep === null ? null : this.picture.boxes.get(keep);
    if (before && after) {
      this.drawing.view.x += (before.x - after.x) * this.drawing.view.scale;
      this.drawing.view.y += (before.y - after.y) * this.drawing.view.scale;
    }
    this.markNear();
    this.markFound();
    this.map.show(this.picture);
    this.drawing.show(this.picture);
    this.drawWords();
    this.drawLegend();
    const hidden = this.model.nodes.kind.filter((kind, node) => kind === PASSING && !this.model.shows(node)).length;
    const all = this.model.nodes.kind.filter((kind) => kind !== WEIGHT && kind !== INPUT && kind !== MONAD).length;
    this.status.textContent = `${counted(all, "node")}${hidden ? `, ${hidden.toLocaleString("en")} passing ones hidden` : ""}; ${this.look.boxes.length.toLocaleString("en")} boxes`;
  }

  drawLegend() {
    this.legendList.replaceChildren(...this.look.legend(this.picture).map(({ fill, text, kind }) => {
      const sign = element("i", { class: kind });
      if (fill) sign.style.setProperty("--fill", fill);
      return element("li", {}, sign, text);
    }));
  }

  // -- the view ----------------------------------------------------------------------------------------

  room() {
    const { width, height } = this.drawing.size();
    return { width: width || 800, height: height || 500 };
  }

  // The first picture is large enough to be read, even if not all of it is in sight.
  begin() {
    this.fit();
    const [first] = this.marked();
    if (first !== undefined) {
      this.center(this.model.boxOf(first), READABLE, false);
      return;
    }
    const { width } = this.room();
    const { scale } = this.drawing.view;
    const wanted = Math.max(SMALLEST, Math.min(READABLE, (width - 40) / this.picture.width));
    if (scale < wanted) this.look_at({ x: Math.max(20, (width - this.picture.width * wanted) / 2), y: 40, scale: wanted }, false);
  }

  // What a page shows first: few findings all at once, the worst before the others; of many the worst alone,
  // and of numbers the largest.
  marked() {
    if (this.model.first !== undefined && this.model.shows(this.model.first)) return [this.model.first];
    const marks = [...(this.look.marks[0] ?? [])].filter(([node]) => this.model.shows(node));
    const found = marks.filter(([, mark]) => mark.severity);
    if (found.length) {
      found.sort((a, b) => WORST.indexOf(a[1].severity) - WORST.indexOf(b[1].severity));
      return found.slice(0, found.length > MOST_FIRST ? 1 : undefined).map(([node]) => node);
    }
    let largest = null;
    for (const mark of marks) if (mark[1].value !== null && !(mark[1].value <= largest?.[1].value)) largest = mark;
    return largest ? [largest[0]] : [];
  }

  fit(smooth = false) {
    const { width, height } = this.room();
    const { width: w, height: h } = this.picture;
    const all = Math.min((width - 40) / w, (height - 40) / h, 1.25);
    const scale = Math.max(all, 0.02);
    this.look_at({ x: (width - w * scale) / 2, y: Math.max(20, (height - h * scale) / 2), scale }, smooth);
  }

  look_at(view, smooth) {
    cancelAnimationFrame(this.moving);
    const from = { ...this.drawing.view };
    if (!smooth || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.drawing.view = view;
      this.drawing.update();
      return;
    }
    const began = performance.now();
    const step = (now) => {
      const part = Math.min(1, Math.max(0, (now - began) / 220));
      const eased = 1 - (1 - part) ** 3;
      const scale = Math.exp(Math.log(from.scale) + (Math.log(view.scale) - Math.log(from.scale)) * eased);
      const at = from.scale === view.scale ? eased : (scale - from.scale) / (view.scale - from.scale);
      this.drawing.view = { x: from.x + (view.x - from.x) * at, y: from.y + (view.y - from.y) * at, scale };
      this.drawing.update();
      if (part < 1) this.moving = requestAnimationFrame(step);
    };
    this.moving = requestAnimationFrame(step);
  }

  zoom(factor, x, y) {
    const { width, height } = this.room();
    [x, y] = [x ?? width / 2, y ?? height / 2];
    const view = this.drawing.view;
    const scale = Math.min(4, Math.max(0.02, view.scale * factor));
    const real = scale / view.scale;
    this.look_at({ x: x - (x - view.x) * real, y: y - (y - view.y) * real, scale }, false);
  }

  center(box, least = 0.75, smooth = true) {
    const place = this.picture.boxes.get(box);
    if (!place) return;
    const { width, height } = this.room();
    const fits = Math.min(width / (place.w + 60), height / (place.h + 60));
    const scale = Math.min(Math.max(this.drawing.view.scale, least), Math.max(fits, 0.05), 1.6);
    this.look_at({ x: width / 2 - (place.x + place.w / 2) * scale, y: height / 2 - (place.y + place.h / 2) * scale, scale }, smooth);
  }

  // Moves as little as needed for a box to be in sight.
  nudge(box) {
    const place = this.picture.boxes.get(box);
    const { x, y, scale } = this.drawing.view;
    const { width, height } = this.room();
    const [left, top] = [place.x * scale + x, place.y * scale + y];
    const [right, bottom] = [left + place.w * scale, top + place.h * scale];
    if (scale < 0.3 || left < 10 || top < 10 || right > width - 10 || bottom > height - 10) this.center(box);
  }

  // -- choosing ----------------------------------------------------------------------------------------

  visit(node, centred = false) {
    if (!this.model.shows(node)) this.showPassing(true);
    const box = this.model.boxOf(node);
    if (box !== node) {
      this.model.reveal(node);
      this.redraw();
    }
    this.choose(node, centred || box !== node ? "centre" : "near");
  }

  // The address names the chosen node, so that it can be sent: page.html#node=75:%258.
  visitAddress() {
    const key = new URLSearchParams(location.hash.slice(1)).get("node");
    const node = key === null ? undefined : this.model.byKey.get(key);
    if (node !== undefined && node !== this.look.chosen) this.visit(node, true);
  }

  nameAddress(box) {
    const key = box !== null && box >= 0 ? this.model.strings[this.model.nodes.key[box]] : "";
    const address = key ? `#${new URLSearchParams({ node: key })}` : location.pathname + location.search;
    if (!key && !location.hash) return;
    try {
      history.replaceState(null, "", address);
    } catch { /* a page inside another one has no address of its own */ }
  }

  choose(box, move = "near", remember = true) {
    if (remember && this.look.chosen !== null && this.look.chosen !== box) this.past.push(this.look.chosen);
    this.look.chosen = box;
    this.nameAddress(box);
    const narrow = this.panel.hidden;
    this.drawPanel();
    if (narrow !== this.panel.hidden) this.drawing.room = null;
    this.markNear();
    this.drawing.repaint();
    this.drawWords();
    this.drawLegend();
    if (box === null) this.svg.removeAttribute("aria-activedescendant");
    else {
      if (move === "centre") this.center(box);
      else if (move === "near") this.nudge(box);
      this.svg.setAttribute("aria-activedescendant", boxId(box));
    }
  }

  markNear() {
    const { look, model } = this;
    look.near = new Set();
    look.partners = new Set();
    if (look.chosen === null) return;
    for (const line of this.picture.lines) {
      if (line.from === look.chosen) look.near.add(line.to);
      if (line.to === look.chosen) look.near.add(line.from);
    }
    if (look.chosen >= 0) for (const { to } of model.partners.get(look.chosen) ?? []) look.partners.add(model.boxOf(to));
  }

  // Types on the lines of the chosen node, and dashed lines to its partners.
  drawWords() {
    const items = [];
    const { chosen } = this.look;
    if (chosen !== null) {
      const lines = this.picture.lines.filter((line) => line.from === chosen || line.to === chosen);
      if (lines.length <= 24) for (const line of lines) {
        const types = new Set(line.values.map((node) => this.sliced(node)).filter(Boolean));
        const text = line.notes[0] ?? line.word ?? (types.size === 1 ? [...types][0] : types.size ? `${line.values.length} values` : "");
        if (!text) continue;
        const near = line.from === chosen ? line.points.slice(0, 2) : line.points.slice(-2);
        items.push({ text: shorten(text, 60), x: (near[0][0] + near[1][0]) / 2, y: (near[0][1] + near[1][1]) / 2, up: line.to === chosen });
      }
      apart(items);
      const own = this.picture.boxes.get(chosen);
      if (own) for (const box of this.look.partners) {
        const other = this.picture.boxes.get(box);
        if (!other || box === chosen) continue;
        const [x0, y0, x1, y1] = [own.x + own.w / 2, own.y + own.h / 2, other.x + other.w / 2, other.y + other.h / 2];
        items.push({ kind: "tie", points: `M${x0} ${y0}Q${(x0 + x1) / 2 + (y1 - y0) * 0.12} ${(y0 + y1) / 2} ${x1} ${y1}` });
      }
    }
    this.drawing.words(items);
  }

  // The type of a value, and what a device holds of it where that is known.
  sliced(node) {
    const slice = this.model.text("slice", node);
    return this.model.text("type", node) + (slice ? ` → ${slice}` : "");
  }

  toggle(group) {
    const began = performance.now();
    this.model.toggle(group);
    this.redraw(~group);
    if (this.look.chosen !== null && !this.picture.boxes.has(this.look.chosen)) this.choose(~group, "stay");
    else if (this.look.chosen !== null) this.drawPanel();
    this.place.dataset.toggled = String(Math.round(performance.now() - began));
  }

  collapseAll() {
    this.model.open = new Set([0]);
    this.choose(null);
    this.redraw();
    this.fit(true);
  }

  // Opens every closed group in sight below a group, as long as the boxes can still be read.
  expandStep(group) {
    const { model } = this;
    const below = new Set([group, ...model.below(group)]);
    const closed = model.visibleGroups().filter((inner) => below.has(inner) && !model.open.has(inner));
    let boxes = this.look.boxes.length;
    let left = 0;
    for (const inner of closed) {
      const more = model.partsOf(inner) - 1;
      if (boxes + more > MOST_BOXES) { left++; continue; }
      model.open.add(inner);
      boxes += more;
    }
    if (closed.length > left) this.redraw(group ? ~group : null);
    this.status.textContent = this.status.textContent.split(", and ")[0];
    if (left) this.status.textContent += `, and ${counted(left, "group")} left closed: more boxes would be too many`;
  }

  colourBy(mode) {
    this.look.mode = mode;
    this.colour.value = mode;
    this.look.scales = null;
    this.drawing.repaint();
    this.drawLegend();
  }

  showPassing(wanted) {
    this.passing.checked = wanted;
    this.model.withPassing = wanted;
    this.model.refresh();
    this.look.forget();
    if (this.model.boxes() > MOST_BOXES) this.model.openSome(FIRST_BOXES);
    if (this.look.chosen >= 0 && !this.model.shows(this.look.chosen)) this.choose(null);
    this.redraw();
    this.fit(true);
  }

  // -- the panel ---------------------------------------------------------------------------------------

  drawPanel() {
    const box = this.look.chosen;
    this.panel.hidden = box === null;
    if (box === null) return;
    const close = element("button", { type: "button", "aria-label": "Close", title: "Close", onclick: () => { this.choose(null); this.svg.focus(); } }, "✕");
    const body = box >= 0 ? this.aboutNode(box) : this.aboutGroup(~box);
    this.panel.replaceChildren(element("div", { class: "head" }, element("h2", {}, this.titleOf(box)), close), this.wayTo(box), ...body);
    this.panel.scrollTop = 0;
  }

  titleOf(box) {
    if (box < 0) return this.model.groupText("name", ~box);
    const { model } = this;
    const name = model.text("name", box);
    const what = [WEIGHT, INPUT].includes(model.nodes.kind[box]) ? name : model.text("op", box);
    return `${model.text("id", box)}  ${what}`;
  }

  wayTo(box) {
    const way = [];
    for (let group = this.model.parentOf(box); group > 0; group = this.model.groups.parent[group]) {
      way.unshift(element("button", { type: "button", onclick: () => this.choose(~group, "centre") }, this.model.groupText("name", group)));
    }
    const parts = way.flatMap((part, index) => (index ? [" / ", part] : [part]));
    return element("div", { class: "way" }, ...parts);
  }

  go(node, more = "") {
    const { model } = this;
    const parameter = [WEIGHT, INPUT].includes(model.nodes.kind[node]);
    const text = `${model.text("id", node)} ${parameter ? model.text("name", node) : model.text("op", node)}`;
    return element("li", {}, element("button", { type: "button", class: "go", "data-node": model.text("key", node), onclick: () => this.visit(node, true) }, text), element("small", {}, more));
  }

  list(title, items) {
    if (!items.length) return [];
    const rest = items.length - MOST_LISTED;
    return [element("h3", {}, `${title} (${items.length.toLocaleString("en")})`),
      element("ul", {}, ...items.slice(0, MOST_LISTED), rest > 0 ? element("li", {}, element("small", {}, `… ${rest.toLocaleString("en")} more`)) : null)];
  }

  aboutNode(node) {
    const { model } = this;
    const facts = [];
    const all = model.nodes.facts[node];
    for (let at = 0; at < all.length; at += 2) facts.push([model.strings[all[at]], model.strings[all[at + 1]]]);
    const name = model.text("name", node);
    if (model.nodes.kind[node] !== WEIGHT && model.nodes.kind[node] !== INPUT) facts.unshift(["name", name || "none"], ["line", model.nodes.line[node].toLocaleString("en")]);
    const inputs = model.inputs[node].map((item) => this.go(item.node, `  ${item.word ?? (item.position >= 0 ? `operand ${item.position}` : "called")}${item.kind ? ", by call" : ""}${model.text("type", item.node) ? `, ${model.text("type", item.node)}` : ""}${this.noteOn(item.node, node)}`));
    const users = model.outputs[node].map((item) => this.go(item.node, `  ${item.word ?? (item.position >= 0 ? `as operand ${item.position}` : "")}${this.noteOn(node, item.node)}`));
    const tied = [...(model.partners.get(node) ?? [])].sort((a, b) => model.shows(b.to) - model.shows(a.to));
    const partners = tied.map(({ to, kind, certain, first }) => this.go(to, `  ${partnerText(kind, first)}${certain ? "" : ", probably"}`));
    return [...this.marksOf(node), ...this.list("Partners", partners), ...this.list("Takes", inputs), ...this.list("Used by", users),
      element("h3", {}, "Facts"), factList(facts)];
  }

  noteOn(from, to) {
    const note = this.model.notes.get(`${from} ${to}`);
    return note === undefined ? "" : `, redistribution ${this.model.strings[note]}`;
  }

  marksOf(node) {
    return this.model.overlays.flatMap((overlay, index) => {
      const mark = this.look.marks[index].get(node);
      if (!mark) return [];
      const value = mark.value === null ? "" : ` ${unitText(mark.value, overlay.unit)}`;
      return [element("div", { class: `mark ${mark.severity || "plain"}` }, `${overlay.title}:${value}${mark.text ? ` ${mark.text}` : ""}${!value && !mark.text ? ` ${mark.severity}` : ""}`)];
    });
  }

  aboutGroup(group) {
    const { model } = this;
    const sums = this.look.sumsOf(group);
    const ops = [...sums.ops].sort((a, b) => b[1] - a[1]);
    const open = model.open.has(group);
    const act = (text, run) => element("button", { type: "button", onclick: run }, text);
    return [
      element("div", { class: "act" }, act(open ? "Collapse" : "Expand", () => this.toggle(group)),
        open ? act("Expand by one step", () => this.expandStep(group)) : null, act("Zoom to it", () => this.center(~group, 0.05))),
      factList([["path", model.groupText("path", group)], ["holds", `${counted(sums.statements, "node")}${model.groupText("note", group) ? `, ${model.groupText("note", group)}` : ""}`],
        ["results", bytesText(sums.bytes)], ...(sums.collectives ? [["collectives", sums.collectives.toLocaleString("en")]] : [])]),
      element("h3", {}, "Operators"), factList(ops.slice(0, 40).map(([op, count]) => [op, count.toLocaleString("en")])),
    ];
  }

  // -- search ------------------------------------------------------------------------------------------

  // Words that all occur; op:, name:, scope: and id: look at that alone.
  find(text) {
    const { model } = this;
    this.index ??= Array.from({ length: model.count }, (_, node) => {
      const fields = { op: model.text("op", node), name: model.text("name", node), id: model.text("id", node), scope: model.groupText("path", model.nodes.group[node]) };
      for (const key of Object.keys(fields)) fields[key] = fields[key].toLowerCase();
      return { ...fields, all: Object.values(fields).join("\n") };
    });
    const words = text.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
      const at = word.indexOf(":");
      const field = word.slice(0, at);
      return ["op", "name", "scope", "id"].includes(field) ? [field, word.slice(at + 1)] : ["all", word];
    });
    const found = [];
    for (let node = 0; node < model.count; node++) {
      if (model.nodes.kind[node] === MONAD) continue;
      if (words.every(([field, word]) => holds(this.index[node][field], word))) found.push(node);
    }
    const exact = words.length === 1 ? words[0][1] : "";
    const rank = (node) => (this.index[node].id === exact || this.index[node].name === exact ? 0 : this.index[node].op === exact ? 1 : model.shows(node) ? 2 : 3);
    return found.map((node) => [rank(node), node]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, node]) => node);
  }

  lookUp() {
    const began = performance.now();
    const text = this.search.value.trim();
    this.found = text ? this.find(text) : [];
    this.markFound();
    this.drawing.repaint();
    this.at = this.found.length ? 0 : -1;
    const { model } = this;
    const rows = this.found.slice(0, MOST_RESULTS).map((node, index) =>
      element("li", { role: "option", id: `result-${index}`, onpointerdown: (event) => { event.preventDefault(); this.take(index); } },
        element("b", {}, `${model.text("id", node)} ${model.text("op", node)}`), ` ${model.text("name", node)}`,
        element("small", {}, model.groupText("path", model.nodes.group[node]))));
    if (this.found.length > 1) rows.unshift(this.countFound());
    if (this.found.length > MOST_RESULTS) rows.push(element("li", { class: "none" }, `… ${(this.found.length - MOST_RESULTS).toLocaleString("en")} more; add words`));
    if (text && !rows.length) rows.push(element("li", { class: "none" }, "nothing found"));
    this.results.replaceChildren(...rows);
    this.showResults(Boolean(text));
    this.place.dataset.searched = String(Math.round(performance.now() - began));
  }

  // How many there are, and of which operators.
  countFound() {
    const ops = new Map();
    for (const node of this.found) {
      const op = this.model.text("op", node) || "parameter";
      ops.set(op, (ops.get(op) ?? 0) + 1);
    }
    const most = [...ops].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([op, count]) => `${op} ${count.toLocaleString("en")}`);
    if (ops.size > 3) most.push("…");
    return element("li", { class: "none count" }, `${this.found.length.toLocaleString("en")} found: ${most.join(", ")}`);
  }

  markFound() {
    this.look.matches = new Set((this.found ?? []).slice(0, MOST_MARKED).map((node) => this.model.boxOf(node)));
  }

  showResults(shown) {
    this.results.hidden = !shown;
    this.search.setAttribute("aria-expanded", String(shown));
    this.point();
  }

  point() {
    const options = [...this.results.querySelectorAll("[role=option]")];
    options.forEach((row, index) => row.setAttribute("aria-selected", String(index === this.at)));
    const row = options[this.at];
    if (row && !this.results.hidden) {
      this.search.setAttribute("aria-activedescendant", row.id);
      row.scrollIntoView({ block: "nearest" });
    } else this.search.removeAttribute("aria-activedescendant");
  }

  take(index) {
    const node = this.found?.[index];
    if (node === undefined) return;
    this.showResults(false);
    this.visit(node, true);
    this.svg.focus();
  }

  // -- mouse -------------------------------------------------------------------------------------------

  listen() {
    this.search.addEventListener("input", () => this.lookUp());
    this.search.addEventListener("focus", () => { if (this.search.value.trim()) this.showResults(true); });
    this.search.addEventListener("blur", () => this.showResults(false));
    this.search.addEventListener("keydown", (event) => this.searchKey(event));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("keydown", (event) => this.pageKey(event));
    window.addEventListener("hashchange", () => this.visitAddress());
    this.listenPointer();
    new ResizeObserver(() => { this.drawing.room = null; this.drawing.update(); }).observe(this.svg);
  }

  listenPointer() {
    const held = new Map();
    let moved = false;
    let pinch = 0;
    const { svg } = this;
    const local = (event) => {
      const { left, top } = svg.getBoundingClientRect();
      return [event.clientX - left, event.clientY - top];
    };
    svg.addEventListener("pointerdown", (event) => {
      held.set(event.pointerId, local(event));
      moved = false;
      pinch = 0;
    });
    svg.addEventListener("pointermove", (event) => {
      if (!held.has(event.pointerId)) return;
      const [x, y] = local(event);
      const [px, py] = held.get(event.pointerId);
      if (!moved && Math.hypot(x - px, y - py) < 4) return;
      if (!moved) { moved = true; svg.classList.add("dragging"); svg.setPointerCapture(event.pointerId); }
      held.set(event.pointerId, [x, y]);
      if (held.size === 1) {
        const view = this.drawing.view;
        this.look_at({ ...view, x: view.x + x - px, y: view.y + y - py }, false);
      } else {
        const [[ax, ay], [bx, by]] = [...held.values()];
        const apart = Math.hypot(ax - bx, ay - by);
        if (pinch) this.zoom(apart / pinch, (ax + bx) / 2, (ay + by) / 2);
        pinch = apart;
      }
    });
    const release = (event) => {
      if (!held.delete(event.pointerId)) return;
      svg.classList.remove("dragging");
      if (!moved && event.type === "pointerup") this.click(event);
    };
    svg.addEventListener("pointerup", release);
    svg.addEventListener("pointercancel", release);
    svg.addEventListener("dblclick", (event) => {
      const box = this.boxAt(event);
      if (box === null) this.zoom(1.5, ...local(event));
    });
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const step = event.deltaMode === 1 ? 16 : 1;
      if (event.shiftKey) {
        const view = this.drawing.view;
        this.look_at({ ...view, x: view.x - (event.deltaX || event.deltaY) * step }, false);
      } else this.zoom(Math.exp(-event.deltaY * step * (event.ctrlKey ? 0.01 : 0.0016)), ...local(event));
    }, { passive: false });
  }

  boxAt(event) {
    const found = event.target.closest?.(".box");
    return found ? Number(found.dataset.box) : null;
  }

  // A click on a closed group opens it; on the title of an open one it closes it.
  click(event) {
    const box = this.boxAt(event);
    this.svg.focus({ preventScroll: true });
    if (box === null) { this.choose(null); return; }
    if (box >= 0) { this.choose(box, "stay"); return; }
    const open = this.model.open.has(~box);
    const onTitle = event.target.closest(".box") && this.onTitle(event, box);
    if (open && !onTitle) { this.choose(null); return; }
    this.choose(box, "stay");
    this.toggle(~box);
  }

  onTitle(event, box) {
    const { top } = this.svg.getBoundingClientRect();
    const { y, scale } = this.drawing.view;
    return (event.clientY - top - y) / scale - this.picture.boxes.get(box).y < HEAD;
  }

  // -- keyboard ----------------------------------------------------------------------------------------

  pageKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    if (event.key === "/") { event.preventDefault(); this.search.focus(); this.search.select(); }
    else if (event.key === "?") this.showKeys();
    else if (event.key === "Escape" && event.target !== this.svg) { this.hideKeys(); this.svg.focus(); }
  }

  searchKey(event) {
    if (event.key === "Enter") this.take(Math.max(0, this.at));
    else if (event.key === "Escape") {
      this.search.value = "";
      this.lookUp();
      this.svg.focus();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const last = Math.min(this.found?.length ?? 0, MOST_RESULTS) - 1;
      this.at = Math.max(0, Math.min(last, this.at + (event.key === "ArrowDown" ? 1 : -1)));
      this.point();
    }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const box = this.look.chosen;
    const acts = {
      ArrowUp: () => this.follow(-1), ArrowDown: () => this.follow(1),
      ArrowLeft: () => this.beside(-1), ArrowRight: () => this.beside(1),
      Enter: () => this.enter(), " ": () => this.enter(), Escape: () => this.leave(),
      "+": () => this.zoom(1.3), "=": () => this.zoom(1.3), "-": () => this.zoom(1 / 1.3),
      f: () => this.fit(true), 0: () => this.fit(true), z: () => { if (box !== null) this.center(box, 1.2); },
      c: () => this.collapseAround(), e: () => this.expandStep(box !== null && box < 0 ? ~box : box === null ? 0 : this.model.parentOf(box)),
      p: () => this.showPassing(!this.model.withPassing), Backspace: () => this.back(),
      Home: () => this.choose(this.firstBox(), "near"),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  firstBox() {
    const places = [...this.picture.boxes.values()].filter((place) => !place.open);
    const lane = (place) => this.picture.boxes.get(~this.model.lane[this.model.parentOf(place.box)])?.x ?? 0;
    places.sort((a, b) => lane(a) - lane(b) || a.y - b.y || a.x - b.x);
    return places[0]?.box ?? null;
  }

  // Along a line to a box above or below, the nearest of them; what a box takes stands above it, in
  // the backward pass below.
  follow(direction) {
    const { chosen } = this.look;
    if (chosen === null) { this.choose(this.firstBox()); return; }
    const here = this.picture.boxes.get(chosen);
    const ends = [];
    for (const line of this.picture.lines) {
      const other = line.from === chosen ? line.to : line.to === chosen ? line.from : null;
      const place = other === null ? null : this.picture.boxes.get(other);
      if (place && !line.far && (place.y - here.y) * direction > 2) ends.push(place);
    }
    if (!ends.length) { this.towards(0, direction); return; }
    ends.sort((a, b) => distance(here, a) - distance(here, b));
    this.choose(ends[0].box);
  }

  beside(direction) {
    if (this.look.chosen === null) this.choose(this.firstBox());
    else this.towards(direction, 0);
  }

  // The nearest box in a direction, one that stands in the same group first.
  towards(dx, dy) {
    const here = this.picture.boxes.get(this.look.chosen);
    const middle = (place) => [place.x + place.w / 2, place.y + place.h / 2];
    const [x, y] = middle(here);
    let best = null;
    let least = Infinity;
    for (const place of this.picture.boxes.values()) {
      if (place.open || place.box === here.box) continue;
      const [px, py] = middle(place);
      const along = (px - x) * dx + (py - y) * dy;
      const across = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
      if (along <= 4) continue;
      const same = this.model.parentOf(place.box) === this.model.parentOf(here.box);
      const far = along + across * 3 + (same ? 0 : 400);
      if (far < least) [best, least] = [place.box, far];
    }
    if (best !== null) this.choose(best);
  }

  enter() {
    const { chosen } = this.look;
    if (chosen === null) this.choose(this.firstBox());
    else if (chosen < 0) this.toggle(~chosen);
    else (this.panel.querySelector(".go") ?? this.panel.querySelector("button"))?.focus();
  }

  leave() {
    if (this.hideKeys()) return;
    const { chosen } = this.look;
    if (chosen === null) return;
    const around = this.model.parentOf(chosen);
    this.choose(around > 0 ? ~around : null, "stay");
  }

  collapseAround() {
    const { chosen } = this.look;
    if (chosen === null) return;
    const group = chosen < 0 && this.model.open.has(~chosen) ? ~chosen : this.model.parentOf(chosen);
    if (group <= 0) return;
    this.toggle(group);
    this.choose(~group);
  }

  back() {
    const box = this.past.pop();
    if (box === undefined) return;
    if (box >= 0 && this.model.boxOf(box) !== box) { this.model.reveal(box); this.redraw(); }
    if (this.picture.boxes.has(box)) this.choose(box, "centre", false);
  }

  showKeys() {
    if (this.hideKeys()) return;
    const rows = KEYS.flatMap(([keys, text]) => [element("dt", {}, element("kbd", {}, keys)), element("dd", {}, text)]);
    this.keys = element("div", { class: "keys", role: "dialog", "aria-label": "Keys", tabindex: "-1", onclick: () => this.hideKeys(),
      onkeydown: (event) => { if (["Escape", "?", "Enter"].includes(event.key)) { event.stopPropagation(); this.hideKeys(); } } },
      element("h2", {}, "Keys"), element("dl", { class: "facts" }, ...rows),
      element("p", { class: "note" }, "Drag moves, the wheel zooms. Search takes words, and op:, name:, scope:, id: before one; a number is found as a whole."));
    this.stage.append(this.keys);
    this.keys.focus();
  }

  hideKeys() {
    if (!this.keys) return false;
    this.keys.remove();
    this.keys = null;
    this.svg.focus();
    return true;
  }
}

// Words that would cover each other move apart: those above the box upwards, others down.
function apart(items) {
  const width = (item) => item.text.length * 6 + 14;
  const placed = [];
  for (const item of items) {
    const covers = (other) => Math.abs(item.x - other.x) < (width(item) + width(other)) / 2 && Math.abs(item.y - other.y) < 18;
    for (let step = 0; step < 24 && placed.some(covers); step++) item.y += item.up ? -18 : 18;
    placed.push(item);
  }
}

// Whether a text holds a word; a number only as a whole: 17 is not in 4173, nor %1 in %12.
function holds(text, word) {
  if (!/^%?\d+$/.test(word)) return text.includes(word);
  const digit = (char) => char >= "0" && char <= "9";
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (!digit(text[at - 1] ?? "") && !digit(text[at + word.length] ?? "")) return true;
  }
  return false;
}

function factList(facts) {
  return element("dl", { class: "facts" }, ...facts.flatMap(([label, value]) => [element("dt", {}, label), element("dd", {}, value)]));
}

function partnerText(kind, first) {
  if (kind === "gradient") return first ? "its gradient" : "it is the gradient of this";
  if (kind === "recompute") return first ? "computed again" : "it is a copy of this";
  return first ? "updated here" : "updates this";
}

function distance(a, b) {
  return Math.hypot(a.x + a.w / 2 - b.x - b.w / 2, (a.y + a.h / 2 - b.y - b.h / 2) * 1.5);
}
