// Draws a picture as svg.  Only what is in sight is in the page, so that ten thousand boxes pan as
// smoothly as ten.

const SVG = "http://www.w3.org/2000/svg";
const TITLE_FONT = '600 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const LINE_FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const LETTER_WIDTH = 7; // where a browser measures no text
const MOST_LETTERS = 34;
const FAR = 0.34; // a scale at which small text is left out
/** @type {Layer[]} */
const LAYERS = ["frames", "lines", "boxes"]; // from below to above
const PAINT_CLASSES = ["chosen", "near", "match", "dim", "marked", "partner", "plain"];

/**
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, string | number | undefined>} [attributes]
 * @param {...(Node | string)} children
 * @returns {SVGElementTagNameMap[Name]}
 */
function shape(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== "") node.setAttribute(key, String(value));
  }
  node.append(...children);
  return node;
}

/**
 * Both ends of a long name tell something.
 * @param {string} text
 * @param {number} [most]
 */
function shorten(text, most = MOST_LETTERS) {
  if (text.length <= most) return text;
  const head = Math.floor((most - 1) / 2);
  return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
}

class Measure {
  constructor() {
    this.context = document.createElement("canvas").getContext("2d");
    /** @type {Map<string, number>} */
    this.known = new Map();
  }

  /** @param {string} text @param {string} font */
  width(text, font) {
    return valueOrNew(this.known, font + text, () => {
      if (!this.context) return text.length * LETTER_WIDTH;
      this.context.font = font;
      return this.context.measureText(text).width;
    });
  }
}

/**
 * A line through points: straight where the points stand above each other (or, running across,
 * beside each other), else an S.
 * @param {Point[]} points
 * @param {boolean} [across]
 * @returns {string}
 */
function pathOf(points, across = false) {
  if (across) return pathOf(points.map(([x, y]) => [y, x])).replace(/(-?[\d.]+) (-?[\d.]+)/g, "$2 $1").replaceAll("V", "H");
  let path = `M${points[0][0].toFixed(1)} ${points[0][1].toFixed(1)}`;
  for (let index = 1; index < points.length; index++) {
    const [[x0, y0], [x1, y1]] = [points[index - 1], points[index]];
    if (Math.abs(x0 - x1) < 0.3) path += `V${y1.toFixed(1)}`;
    else if (y0 === y1) path += `L${x1.toFixed(1)} ${y1.toFixed(1)}`;
    else {
      const middle = ((y0 + y1) / 2).toFixed(1);
      path += `C${x0.toFixed(1)} ${middle} ${x1.toFixed(1)} ${middle} ${x1.toFixed(1)} ${y1.toFixed(1)}`;
    }
  }
  return path;
}

/**
 * @param {Point[]} points
 * @returns {Bounds}
 */
function boundsOf(points) {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of points) {
    left = Math.min(left, x); right = Math.max(right, x);
    top = Math.min(top, y); bottom = Math.max(bottom, y);
  }
  return { left, top, right, bottom };
}

/** @param {string} id */
function arrowhead(id) {
  return shape("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto", class: id },
    shape("path", { d: "M0 0.8L7.5 4L0 7.2Z" }));
}

class Drawing {
  /**
   * @param {SVGSVGElement} svg
   * @param {Look} look how boxes and lines look
   */
  constructor(svg, look) {
    this.svg = svg;
    this.look = look;
    /** @type {View} */
    this.view = { x: 0, y: 0, scale: 1 };
    /** @type {DrawnItem[]} */
    this.items = [];
    /** @type {Map<string, SVGElement>} */
    this.present = new Map();
    /** @type {DOMRect | null} */
    this.room = null;
    /** @type {((view: View, room: DOMRect) => void) | null} */
    this.moved = null;
    svg.append(shape("defs", {}, arrowhead("arrow"), arrowhead("arrow-lit"), arrowhead("arrow-note")));
    this.layers = {
      frames: shape("g", { class: "frames" }), lines: shape("g", { class: "lines" }),
      boxes: shape("g", { class: "boxes" }), words: shape("g", { class: "words" }),
    };
    this.world = shape("g", {}, ...Object.values(this.layers));
    svg.append(this.world);
  }

  /** @param {Picture} picture */
  show(picture) {
    for (const node of this.present.values()) node.remove();
    this.present.clear();
    const places = [...picture.boxes.values()].sort((a, b) => a.depth - b.depth);
    this.items = [
      ...places.map((place) => this.itemOfBox(place)),
      ...picture.lines.map((line, index) => this.itemOfLine(line, index)),
    ];
    this.update();
  }

  /**
   * @param {Place} place
   * @returns {DrawnItem}
   */
  itemOfBox(place) {
    const { box, x, y, w, h, open } = place;
    return {
      key: `b${box}`, layer: open ? "frames" : "boxes", bounds: { left: x, top: y, right: x + w, bottom: y + h },
      draw: () => this.box(place), paint: (node) => this.paint(node, box),
    };
  }

  /**
   * @param {DrawnLine} line
   * @param {number} index
   * @returns {DrawnItem}
   */
  itemOfLine(line, index) {
    return {
      key: `l${index}`, layer: "lines", bounds: boundsOf(line.points),
      draw: () => this.line(line), paint: (node) => this.paintLine(node, line),
    };
  }

  update() {
    const { x, y, scale } = this.view;
    this.world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    this.svg.classList.toggle("far", scale < FAR);
    this.moved?.(this.view, this.size());
    const sight = this.sight();
    /** @type {Record<Layer, SVGElement[]>} */
    const fresh = { frames: [], lines: [], boxes: [] };
    for (const { key, layer, bounds, draw } of this.items) {
      const seen = bounds.right >= sight.left && bounds.left <= sight.right && bounds.bottom >= sight.top && bounds.top <= sight.bottom;
      const present = this.present.get(key);
      if (seen && !present) {
        const node = draw();
        this.present.set(key, node);
        fresh[layer].push(node);
      } else if (!seen && present) {
        present.remove();
        this.present.delete(key);
      }
    }
    for (const layer of LAYERS) this.layers[layer].append(...fresh[layer]);
    if (fresh.frames.length) this.sortFrames();
  }

  /**
   * The part of the picture that is in sight, and something around it.
   * @returns {Bounds}
   */
  sight() {
    const { x, y, scale } = this.view;
    const { width, height } = this.size();
    const [marginX, marginY] = [width * 0.4 / scale, height * 0.4 / scale];
    return {
      left: -x / scale - marginX, right: (width - x) / scale + marginX,
      top: -y / scale - marginY, bottom: (height - y) / scale + marginY,
    };
  }

  // Inner frames lie over outer ones, in whatever order they came into sight.
  sortFrames() {
    const depth = (/** @type {Element} */ frame) => Number(frame.getAttribute("data-depth"));
    const frames = [...this.layers.frames.children];
    frames.sort((a, b) => depth(a) - depth(b));
    this.layers.frames.append(...frames);
  }

  size() {
    this.room ??= this.svg.getBoundingClientRect();
    return this.room;
  }

  repaint() {
    for (const { key, paint } of this.items) {
      const node = this.present.get(key);
      if (node) paint(node);
    }
  }

  // -- pieces ----------------------------------------------------------------------------------------

  /** @param {Place} place */
  box(place) {
    const { box, open } = place;
    const label = this.look.label(box);
    const node = shape("g", {
      class: `box ${label.kind}${open ? " open" : ""}`, id: boxId(box), "data-box": box,
      "data-depth": place.depth, transform: `translate(${place.x.toFixed(1)} ${place.y.toFixed(1)})`,
      role: "button", "aria-label": label.spoken, "aria-expanded": box < 0 ? String(open) : undefined,
    });
    const size = { width: place.w.toFixed(1), height: place.h.toFixed(1) };
    const rx = label.kind === "weight" || label.kind === "input" ? place.h / 2 : open ? 8 : 5;
    if (label.kind === "group" && !open) node.append(shape("rect", { class: "stack", x: 4, y: 4, ...size, rx }));
    node.append(shape("rect", { class: "body", ...size, rx }));
    if (open) {
      node.append(shape("text", { class: "title", x: 12, y: 18 }, `▾ ${label.title}`));
    } else {
      const middle = place.w / 2;
      node.append(shape("text", { class: "title", x: middle, y: label.under ? 17 : place.h / 2 + 4 }, label.title));
      if (label.under) node.append(shape("text", { class: "under", x: middle, y: 32 }, label.under));
    }
    node.append(...this.badges(place, label), shape("title", {}, label.spoken));
    this.paint(node, box);
    return node;
  }

  /** @param {Place} place @param {Label} label */
  badges(place, label) {
    let x = place.w - 4;
    return label.badges.map(([kind, text]) => {
      const width = text.length * 6.2 + 10;
      x -= width;
      const badge = shape("g", { class: `badge ${kind}`, transform: `translate(${x.toFixed(1)} ${place.open ? 5 : -8})` },
        shape("rect", { width, height: 15, rx: 7.5 }), shape("text", { x: width / 2, y: 11 }, text));
      x -= 3;
      return badge;
    });
  }

  /** @param {SVGElement} node @param {number} box */
  paint(node, box) {
    const { fill, classes } = this.look.paint(box);
    if (fill) node.style.setProperty("--fill", fill);
    else node.style.removeProperty("--fill");
    for (const name of PAINT_CLASSES) node.classList.toggle(name, classes.includes(name));
  }

  /** @param {DrawnLine} line */
  line(line) {
    const node = shape("path", { d: pathOf(line.points, line.across), class: "line", "data-from": line.from, "data-to": line.to });
    this.paintLine(node, line);
    return node;
  }

  /** @param {SVGElement} node @param {DrawnLine} line */
  paintLine(node, line) {
    node.setAttribute("class", `line ${this.look.paintLine(line).join(" ")}`);
  }

  /**
   * Words on lines, and dashed lines to partners: of the chosen box only.
   * @param {Word[]} words
   * @param {string[]} ties
   */
  words(words, ties) {
    this.layers.words.replaceChildren(
      ...words.map(({ text, x, y }) => {
        const width = text.length * 6 + 10;
        return shape("g", { class: "word", transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
          shape("rect", { x: -width / 2, y: -9, width, height: 16, rx: 4 }), shape("text", { y: 3 }, text));
      }),
      ...ties.map((path) => shape("path", { class: "tie", d: path })));
  }
}

/** @param {number} box */
const boxId = (box) => (box >= 0 ? `box-${box}` : `group-${~box}`);
