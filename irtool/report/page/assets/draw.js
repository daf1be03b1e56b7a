// Draws a picture as svg.  Only what is in sight is in the page, so that ten thousand boxes pan as
// smoothly as ten.

const SVG = "http://www.w3.org/2000/svg";
const TITLE_FONT = '600 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const LINE_FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const MOST_LETTERS = 34;

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== "") made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// Both ends of a long name tell something.
function shorten(text, most = MOST_LETTERS) {
  if (text.length <= most) return text;
  const head = Math.floor((most - 1) / 2);
  return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
}

class Measure {
  constructor() {
    this.context = document.createElement("canvas").getContext("2d");
    this.known = new Map();
  }

  width(text, font) {
    const key = font + text;
    if (!this.known.has(key)) {
      this.context.font = font;
      this.known.set(key, this.context.measureText(text).width);
    }
    return this.known.get(key);
  }
}

// A line through points: straight where the points stand above each other (or, running across,
// beside each other), else an S.
function pathOf(points, across) {
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

function boundsOf(points) {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of points) {
    left = Math.min(left, x); right = Math.max(right, x);
    top = Math.min(top, y); bottom = Math.max(bottom, y);
  }
  return { left, top, right, bottom };
}

class Drawing {
  // `look` answers how a box looks: label(box) and paint(box).
  constructor(svg, look) {
    this.svg = svg;
    this.look = look;
    this.view = { x: 0, y: 0, scale: 1 };
    this.items = [];
    this.present = new Map();
    svg.append(shape("defs", {}, this.marker("arrow"), this.marker("arrow-lit"), this.marker("arrow-note")));
    this.world = shape("g");
    this.layers = {};
    for (const name of ["frames", "lines", "boxes", "words"]) {
      this.layers[name] = shape("g", { class: name });
      this.world.append(this.layers[name]);
    }
    svg.append(this.world);
  }

  marker(id) {
    return shape("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto", class: id },
      shape("path", { d: "M0 0.8L7.5 4L0 7.2Z" }));
  }

  show(picture) {
    this.picture = picture;
    for (const [, drawn] of this.present) drawn.remove();
    this.present.clear();
    this.items = [];
    for (const place of picture.boxes.values()) {
      const bounds = { left: place.x, top: place.y, right: place.x + place.w, bottom: place.y + place.h };
      this.items.push({ key: `b${place.box}`, layer: place.open ? "frames" : "boxes", bounds, rank: place.depth, make: () => this.box(place) });
    }
    this.items.sort((a, b) => a.rank - b.rank);
    picture.lines.forEach((line, index) => {
      this.items.push({ key: `l${index}`, layer: "lines", bounds: boundsOf(line.points), make: () => this.line(line), line });
    });
    this.update();
  }

  update() {
    const { x, y, scale } = this.view;
    this.world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    this.svg.classList.toggle("far", scale < 0.34);
    const { width, height } = this.size();
    this.moved?.(this.view, { width, height });
    const [marginX, marginY] = [width * 0.4 / scale, height * 0.4 / scale];
    const left = -x / scale - marginX;
    const right = (width - x) / scale + marginX;
    const top = -y / scale - marginY;
    const bottom = (height - y) / scale + marginY;
    const fresh = { frames: [], lines: [], boxes: [] };
    for (const item of this.items) {
      const { bounds } = item;
      const seen = bounds.right >= left && bounds.left <= right && bounds.bottom >= top && bounds.top <= bottom;
      const drawn = this.present.get(item.key);
      if (seen && !drawn) {
        const made = item.make();
        this.present.set(item.key, made);
        fresh[item.layer].push(made);
      } else if (!seen && drawn) {
        drawn.remove();
        this.present.delete(item.key);
      }
    }
    for (const [name, made] of Object.entries(fresh)) if (made.length) this.layers[name].append(...made);
    if (fresh.frames.length) this.sortFrames();
  }

  // Inner frames lie over outer ones, in whatever order they came into sight.
  sortFrames() {
    const frames = [...this.layers.frames.children];
    frames.sort((a, b) => Number(a.dataset.depth) - Number(b.dataset.depth));
    this.layers.frames.append(...frames);
  }

  size() {
    this.room ??= this.svg.getBoundingClientRect();
    return this.room;
  }

  repaint() {
    for (const item of this.items) {
      const drawn = this.present.get(item.key);
      if (drawn && item.layer !== "lines") this.paint(drawn, Number(drawn.dataset.box));
      if (drawn && item.line) this.paintLine(drawn, item.line);
    }
  }

  // -- pieces ----------------------------------------------------------------------------------------

  box(place) {
    const label = this.look.label(place.box);
    const made = shape("g", {
      class: `box ${label.kind}${place.open ? " open" : ""}`, id: boxId(place.box), "data-box": place.box,
      "data-depth": place.depth, transform: `translate(${place.x.toFixed(1)} ${place.y.toFixed(1)})`,
      role: "button", "aria-label": label.spoken, "aria-expanded": place.box < 0 ? String(place.open) : undefined,
    });
    const [w, h] = [place.w.toFixed(1), place.h.toFixed(1)];
    const round = label.kind === "weight" || label.kind === "input" ? place.h / 2 : place.open ? 8 : 5;
    if (label.kind === "group" && !place.open) made.append(shape("rect", { class: "stack", x: 4, y: 4, width: w, height: h, rx: round }));
    made.append(shape("rect", { class: "body", width: w, height: h, rx: round }));
    if (place.open) {
      made.append(shape("text", { class: "title", x: 12, y: 18 }, `▾ ${label.title}`));
    } else {
      const middle = place.w / 2;
      made.append(shape("text", { class: "title", x: middle, y: label.under ? 17 : place.h / 2 + 4 }, label.title));
      if (label.under) made.append(shape("text", { class: "under", x: middle, y: 32 }, label.under));
    }
    this.badges(made, place, label);
    made.append(shape("title", {}, label.spoken));
    this.paint(made, place.box);
    return made;
  }

  badges(made, place, label) {
    let x = place.w - 4;
    for (const [kind, text] of label.badges) {
      const width = text.length * 6.2 + 10;
      x -= width;
      made.append(shape("g", { class: `badge ${kind}`, transform: `translate(${x.toFixed(1)} ${place.open ? 5 : -8})` },
        shape("rect", { width, height: 15, rx: 7.5 }), shape("text", { x: width / 2, y: 11 }, text)));
      x -= 3;
    }
  }

  paint(made, box) {
    const { fill, classes } = this.look.paint(box);
    if (fill) made.style.setProperty("--fill", fill);
    else made.style.removeProperty("--fill");
    for (const name of ["chosen", "near", "match", "dim", "marked", "partner", "plain"]) made.classList.toggle(name, classes.includes(name));
  }

  line(line) {
    const made = shape("path", { d: pathOf(line.points, line.across), class: "line", "data-from": line.from, "data-to": line.to });
    this.paintLine(made, line);
    return made;
  }

  paintLine(made, line) {
    made.setAttribute("class", `line ${this.look.paintLine(line).join(" ")}`);
  }

  // Words on lines, and dashed lines to partners: of the chosen box only.
  words(items) {
    this.layers.words.replaceChildren(...items.map((item) => {
      if (item.points) return shape("path", { class: `tie ${item.kind}`, d: item.points });
      const width = item.text.length * 6 + 10;
      return shape("g", { class: "word", transform: `translate(${item.x.toFixed(1)} ${item.y.toFixed(1)})` },
        shape("rect", { x: -width / 2, y: -9, width, height: 16, rx: 4 }), shape("text", { y: 3 }, item.text));
    }));
  }
}

const boxId = (box) => (box >= 0 ? `box-${box}` : `group-${~box}`);
