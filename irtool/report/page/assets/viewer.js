// The graph on the page: toolbar, view, what is chosen and open, keyboard.

const READABLE = 0.85;
const SMALLEST = 0.55; // what a picture that is wider than the window begins with
const [SCALE_LEAST, SCALE_MOST] = [0.02, 4];
const FIRST_BOXES = 70;
const MOST_MARKED = 5000;
const MOST_FIRST = 12;
const MOST_BOXES = 1000;

/**
 * @param {HTMLElement} place
 * @param {GraphData} data
 * @returns {NodeView}
 */
function startGraph(place, data) {
  const model = new Model(data);
  const viewer = new Viewer(place, model);
  return {
    has: (key) => model.byKey.has(key),
    show: (key) => {
      viewer.visit(valueAt(model.byKey, key), true);
      place.scrollIntoView({ block: "nearest" });
    },
  };
}

class Viewer {
  /**
   * @param {HTMLElement} place
   * @param {Model} model
   */
  constructor(place, model) {
    this.model = model;
    this.look = new Look(model, new Measure());
    /** @type {number[]} */
    this.past = []; // boxes that were chosen before
    /** @type {Picture} */
    this.picture = { boxes: new Map(), lines: [], width: 0, height: 0 };
    this.counts = "";
    this.animation = 0;
    this.search = new Search(model, {
      matched: () => { this.markMatches(); this.drawing.repaint(); },
      take: (node) => { this.visit(node, true); this.svg.focus(); },
      leave: () => this.svg.focus(),
    });
    this.colour = element("select", { "aria-label": "Colour by", onchange: () => this.colourBy(this.colour.value) },
      ...this.look.modes().map(([value, text]) => element("option", { value }, text)));
    this.colour.value = this.look.mode;
    this.passing = element("input", { type: "checkbox", onchange: () => this.showPassing(this.passing.checked) });
    this.svg = shape("svg", { class: "canvas", tabindex: 0, role: "application", "aria-roledescription": "graph",
      "aria-label": "Graph. Arrow keys follow edges, Enter opens groups, slash searches, question mark lists all keys." });
    this.panel = new Panel(model, this.look, this.panelActions());
    this.legend = element("ul", { class: "legend", "aria-label": "Legend" });
    this.status = element("div", { class: "status", "aria-live": "polite" });
    const stage = element("div", { class: "stage" }, this.svg, this.panel.element, this.status);
    this.keyList = new KeyList(stage, () => this.svg.focus());
    const top = elementOf(document, ".top", HTMLElement);
    document.documentElement.style.setProperty("--top", `${top.getBoundingClientRect().height}px`);
    place.replaceChildren(this.toolbar(), this.legend, stage);
    this.drawing = new Drawing(this.svg, this.look);
    this.map = new PictureMap(stage, (x, y) => this.goTo(x, y));
    this.drawing.moved = (view, room) => this.map.look(view, room);
    this.begin();
    this.listen();
    this.visitAddress();
  }

  // -- the page ----------------------------------------------------------------------------------------

  toolbar() {
    /** @param {string} text @param {string} label @param {() => void} act */
    const button = (text, label, act) => element("button", { type: "button", title: label, "aria-label": label, onclick: act }, text);
    return element("div", { class: "tools", role: "toolbar", "aria-label": "Graph" },
      element("div", { class: "find" }, this.search.input, this.search.list),
      element("label", {}, "colour by", this.colour),
      element("label", { title: "Load, Depend, UpdateState, MakeTuple and TupleGetItem" }, this.passing, "passing nodes"),
      element("div", { class: "end" },
        button("Collapse all", "Collapse all groups", () => this.collapseAll()),
        button("−", "Smaller", () => this.zoom(1 / 1.3)), button("+", "Larger", () => this.zoom(1.3)),
        button("Fit", "All in sight", () => this.fit(true)), button("?", "Keys", () => this.keyList.toggle())));
  }

  /** @returns {PanelActions} */
  panelActions() {
    return {
      choose: (box, move) => this.choose(box, move),
      visit: (node) => this.visit(node, true),
      toggle: (group) => this.toggle(group),
      expandStep: (group) => this.expandStep(group),
      zoomTo: (group) => this.centre(~group, 0.05),
      leave: () => { this.choose(null); this.svg.focus(); },
    };
  }

  /**
   * Lays out and draws again.
   * @param {number | null} [keep] a box that stays where it is on the screen
   */
  redraw(keep = null) {
    const before = keep === null ? null : this.picture.boxes.get(keep);
    this.picture = new Arrangement(this.model, (box) => this.look.size(box)).picture();
    this.look.boxes = [...this.picture.boxes.values()].filter((place) => !place.open).map((place) => place.box);
    this.look.scales = null;
    const after = keep === null ? null : this.picture.boxes.get(keep);
    if (before && after) {
      this.drawing.view.x += (before.x - after.x) * this.drawing.view.scale;
      this.drawing.view.y += (before.y - after.y) * this.drawing.view.scale;
    }
    this.markNear();
    this.markMatches();
    this.map.show(this.picture);
    this.drawing.show(this.picture);
    this.drawWords();
    this.drawLegend();
    this.showCounts();
  }

  showCounts() {
    const { model } = this;
    const { kind } = model.nodes;
    const hidden = kind.filter((number, node) => number === PASSING && !model.shows(node)).length;
    const all = kind.filter((number, node) => number !== MONAD && !model.isParameter(node)).length;
    const passing = hidden ? `, ${hidden.toLocaleString("en")} passing ones hidden` : "";
    this.counts = `${counted(all, "node")}${passing}; ${this.look.boxes.length.toLocaleString("en")} boxes`;
    this.status.textContent = this.counts;
  }

  drawLegend() {
    this.legend.replaceChildren(...this.look.legend(this.picture).map(({ fill, text, kind }) => {
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
    this.model.openSome(FIRST_BOXES);
    const marked = this.marked();
    for (const node of marked) this.model.reveal(node);
    this.redraw();
    this.fit();
    const { width } = this.room();
    const { scale } = this.drawing.view;
    const wanted = Math.max(SMALLEST, Math.min(READABLE, (width - 40) / this.picture.width));
    if (marked.length) this.centre(this.model.boxOf(marked[0]), READABLE, false);
    else if (scale < wanted) this.lookAt({ x: Math.max(20, (width - this.picture.width * wanted) / 2), y: 40, scale: wanted }, false);
  }

  // What a page shows first: few findings all at once, the worst before the others; of many the worst alone,
  // and of numbers the largest.
  marked() {
    const { model, look } = this;
    if (model.first !== undefined && model.shows(model.first)) return [model.first];
    const marks = [...(look.marks[0] ?? [])].filter(([node]) => model.shows(node));
    const judged = marks.filter(([, mark]) => mark.severity);
    if (judged.length) {
      judged.sort(([, a], [, b]) => rankOf(a) - rankOf(b));
      return judged.slice(0, judged.length > MOST_FIRST ? 1 : undefined).map(([node]) => node);
    }
    const values = marks.flatMap(([node, { value }]) => (value === null ? [] : [{ node, value }]));
    values.sort((a, b) => b.value - a.value);
    return values.slice(0, 1).map(({ node }) => node);
  }

  fit(smooth = false) {
    const { width, height } = this.room();
    const { width: w, height: h } = this.picture;
    const scale = Math.max(Math.min((width - 40) / w, (height - 40) / h, 1.25), SCALE_LEAST);
    this.lookAt({ x: (width - w * scale) / 2, y: Math.max(20, (height - h * scale) / 2), scale }, smooth);
  }

  /** @param {View} view @param {boolean} smooth */
  lookAt(view, smooth) {
    cancelAnimationFrame(this.animation);
    const from = { ...this.drawing.view };
    if (!smooth || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.drawing.view = view;
      this.drawing.update();
      return;
    }
    const began = performance.now();
    /** @param {number} now */
    const step = (now) => {
      const part = Math.min(1, Math.max(0, (now - began) / 220));
      this.drawing.view = viewBetween(from, view, 1 - (1 - part) ** 3);
      this.drawing.update();
      if (part < 1) this.animation = requestAnimationFrame(step);
    };
    this.animation = requestAnimationFrame(step);
  }

  /**
   * @param {number} factor
   * @param {number} [x] what stays where it is; by default the middle
   * @param {number} [y]
   */
  zoom(factor, x = this.room().width / 2, y = this.room().height / 2) {
    const { view } = this.drawing;
    const scale = Math.min(SCALE_MOST, Math.max(SCALE_LEAST, view.scale * factor));
    const real = scale / view.scale;
    this.lookAt({ x: x - (x - view.x) * real, y: y - (y - view.y) * real, scale }, false);
  }

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    const { x, y, scale } = this.drawing.view;
    this.lookAt({ x: x + dx, y: y + dy, scale }, false);
  }

  /**
   * Moves a point of the picture to the middle.
   * @param {number} x
   * @param {number} y
   * @param {number} [scale]
   * @param {boolean} [smooth]
   */
  goTo(x, y, scale = this.drawing.view.scale, smooth = false) {
    const { width, height } = this.room();
    this.lookAt({ x: width / 2 - x * scale, y: height / 2 - y * scale, scale }, smooth);
  }

  /**
   * @param {number} box
   * @param {number} [least] scale
   * @param {boolean} [smooth]
   */
  centre(box, least = 0.75, smooth = true) {
    const place = this.picture.boxes.get(box);
    if (!place) return;
    const { width, height } = this.room();
    const fits = Math.min(width / (place.w + 60), height / (place.h + 60));
    const scale = Math.min(Math.max(this.drawing.view.scale, least), Math.max(fits, 0.05), 1.6);
    this.goTo(...middleOf(place), scale, smooth);
  }

  /**
   * Moves as little as needed for a box to be in sight.
   * @param {number} box
   */
  nudge(box) {
    const place = this.picture.boxes.get(box);
    if (!place) return;
    const { x, y, scale } = this.drawing.view;
    const { width, height } = this.room();
    const [left, top] = [place.x * scale + x, place.y * scale + y];
    const [right, bottom] = [left + place.w * scale, top + place.h * scale];
    if (scale < 0.3 || left < 10 || top < 10 || right > width - 10 || bottom > height - 10) this.centre(box);
  }

  // -- choosing ----------------------------------------------------------------------------------------

  /** @param {number} node @param {boolean} [centred] */
  visit(node, centred = false) {
    if (!this.model.shows(node)) this.showPassing(true);
    const hidden = this.model.boxOf(node) !== node;
    if (hidden) {
      this.model.reveal(node);
      this.redraw();
    }
    this.choose(node, centred || hidden ? "centre" : "near");
  }

  // The address names the chosen node, so that it can be sent: page.html#node=75:%258.
  visitAddress() {
    const key = new URLSearchParams(location.hash.slice(1)).get("node");
    const node = key === null ? undefined : this.model.byKey.get(key);
    if (node !== undefined && node !== this.look.chosen) this.visit(node, true);
  }

  /** @param {number | null} box */
  nameAddress(box) {
    const key = box !== null && box >= 0 ? this.model.text("key", box) : "";
    if (!key && !location.hash) return;
    const address = key ? `#${new URLSearchParams({ node: key })}` : location.pathname + location.search;
    try {
      history.replaceState(null, "", address);
    } catch { /* a page inside another one has no address of its own */ }
  }

  /**
   * @param {number | null} box
   * @param {Move} [move]
   * @param {boolean} [remember]
   */
  choose(box, move = "near", remember = true) {
    if (remember && this.look.chosen !== null && this.look.chosen !== box) this.past.push(this.look.chosen);
    this.look.chosen = box;
    this.nameAddress(box);
    const { element: panel } = this.panel;
    const wasHidden = panel.hidden;
    this.panel.show(box);
    if (wasHidden !== panel.hidden) this.drawing.room = null;
    this.markNear();
    this.drawing.repaint();
    this.drawWords();
    this.drawLegend();
    if (box === null) {
      this.svg.removeAttribute("aria-activedescendant");
      return;
    }
    if (move === "centre") this.centre(box);
    else if (move === "near") this.nudge(box);
    this.svg.setAttribute("aria-activedescendant", boxId(box));
  }

  markNear() {
    const { look, model } = this;
    const { chosen } = look;
    look.near = new Set();
    look.partners = new Set();
    if (chosen === null) return;
    for (const { from, to } of this.picture.lines) {
      if (from === chosen) look.near.add(to);
      if (to === chosen) look.near.add(from);
    }
    for (const { to } of model.partners.get(chosen) ?? []) look.partners.add(model.boxOf(to));
  }

  markMatches() {
    this.look.matches = new Set(this.search.nodes.slice(0, MOST_MARKED).map((node) => this.model.boxOf(node)));
  }

  drawWords() {
    const { chosen, partners } = this.look;
    if (chosen === null) this.drawing.words([], []);
    else this.drawing.words(wordsOf(this.model, this.picture, chosen), tiesOf(this.picture, chosen, partners));
  }

  // -- what is open ------------------------------------------------------------------------------------

  /** @param {number} group */
  toggle(group) {
    this.model.toggle(group);
    this.redraw(~group);
    const { chosen } = this.look;
    if (chosen === null) return;
    if (this.picture.boxes.has(chosen)) this.panel.show(chosen);
    else this.choose(~group, "stay");
  }

  collapseAll() {
    this.model.open = new Set([0]);
    this.choose(null);
    this.redraw();
    this.fit(true);
  }

  /**
   * Opens every closed group in sight below a group, as long as the boxes can still be read.
   * @param {number} group
   */
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
    this.status.textContent = this.counts + (left ? `, and ${counted(left, "group")} left closed: more boxes would be too many` : "");
  }

  /** @param {string} mode */
  colourBy(mode) {
    this.look.mode = mode;
    this.colour.value = mode;
    this.look.scales = null;
    this.drawing.repaint();
    this.drawLegend();
  }

  /** @param {boolean} wanted */
  showPassing(wanted) {
    const { model, look } = this;
    this.passing.checked = wanted;
    model.withPassing = wanted;
    model.refresh();
    look.forget();
    if (model.boxes() > MOST_BOXES) model.openSome(FIRST_BOXES);
    if (look.chosen !== null && look.chosen >= 0 && !model.shows(look.chosen)) this.choose(null);
    this.redraw();
    this.fit(true);
  }

  // -- mouse -------------------------------------------------------------------------------------------

  listen() {
    this.svg.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("keydown", (event) => this.pageKey(event));
    window.addEventListener("hashchange", () => this.visitAddress());
    new Pointer(this.svg, {
      pan: (dx, dy) => this.pan(dx, dy),
      zoom: (factor, x, y) => this.zoom(factor, x, y),
      click: (event) => this.click(event),
      doubleClick: (event, x, y) => { if (boxUnder(event) === null) this.zoom(1.5, x, y); },
    });
    new ResizeObserver(() => { this.drawing.room = null; this.drawing.update(); }).observe(this.svg);
  }

  /**
   * A click on a closed group opens it; on the title of an open one it closes it.
   * @param {MouseEvent} event
   */
  click(event) {
    const box = boxUnder(event);
    this.svg.focus({ preventScroll: true });
    const isOpen = box !== null && box < 0 && this.model.open.has(~box);
    if (box === null || (isOpen && !this.isOnTitle(event, box))) {
      this.choose(null);
      return;
    }
    this.choose(box, "stay");
    if (box < 0) this.toggle(~box);
  }

  /** @param {MouseEvent} event @param {number} box */
  isOnTitle(event, box) {
    const { top } = this.svg.getBoundingClientRect();
    const { y, scale } = this.drawing.view;
    return (event.clientY - top - y) / scale - valueAt(this.picture.boxes, box).y < HEAD;
  }

  // -- keyboard ----------------------------------------------------------------------------------------

  /** @param {KeyboardEvent} event */
  pageKey(event) {
    const { input } = this.search;
    const isTyping = event.target instanceof Element && event.target.matches("input, select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
    if (event.key === "/") { event.preventDefault(); input.focus(); input.select(); }
    else if (event.key === "?") this.keyList.toggle();
    else if (event.key === "Escape" && event.target !== this.svg) { this.keyList.hide(); this.svg.focus(); }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const box = this.look.chosen;
    /** @type {Record<string, () => void>} */
    const acts = {
      ArrowUp: () => this.follow(-1), ArrowDown: () => this.follow(1),
      ArrowLeft: () => this.beside(-1), ArrowRight: () => this.beside(1),
      Enter: () => this.enter(), " ": () => this.enter(), Escape: () => this.leave(),
      "+": () => this.zoom(1.3), "=": () => this.zoom(1.3), "-": () => this.zoom(1 / 1.3),
      f: () => this.fit(true), 0: () => this.fit(true), z: () => { if (box !== null) this.centre(box, 1.2); },
      c: () => this.collapseAround(), e: () => this.expandStep(box === null ? 0 : box < 0 ? ~box : this.model.parentOf(box)),
      p: () => this.showPassing(!this.model.withPassing), Backspace: () => this.back(),
      Home: () => this.choose(firstBox(this.model, this.picture), "near"),
    };
    if (!Object.hasOwn(acts, event.key)) return;
    event.preventDefault();
    acts[event.key]();
  }

  // The place of the chosen box; where none is chosen or drawn, the first one is chosen instead.
  here() {
    const { chosen } = this.look;
    const place = chosen === null ? undefined : this.picture.boxes.get(chosen);
    if (!place) this.choose(firstBox(this.model, this.picture));
    return place;
  }

  /** @param {number} direction */
  follow(direction) {
    const here = this.here();
    if (!here) return;
    const box = alongLine(this.picture, here, direction) ?? towards(this.model, this.picture, here, 0, direction);
    if (box !== null) this.choose(box);
  }

  /** @param {number} direction */
  beside(direction) {
    const here = this.here();
    const box = here ? towards(this.model, this.picture, here, direction, 0) : null;
    if (box !== null) this.choose(box);
  }

  enter() {
    const { chosen } = this.look;
    if (chosen === null) this.choose(firstBox(this.model, this.picture));
    else if (chosen < 0) this.toggle(~chosen);
    else this.panel.focus();
  }

  leave() {
    if (this.keyList.hide()) return;
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
}

/**
 * @param {View} from
 * @param {View} to
 * @param {number} part how much of the path is done
 * @returns {View}
 */
function viewBetween(from, to, part) {
  const scale = Math.exp(Math.log(from.scale) + (Math.log(to.scale) - Math.log(from.scale)) * part);
  const moved = from.scale === to.scale ? part : (scale - from.scale) / (to.scale - from.scale);
  return { x: from.x + (to.x - from.x) * moved, y: from.y + (to.y - from.y) * moved, scale };
}

/**
 * @param {Event} event
 * @returns {number | null}
 */
function boxUnder({ target }) {
  const node = target instanceof Element ? target.closest(".box") : null;
  return node ? Number(node.getAttribute("data-box")) : null;
}
