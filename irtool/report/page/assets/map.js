// The whole picture in a corner: what is in sight, and a way to get elsewhere.

const [MAP_WIDTH, MAP_HEIGHT] = [180, 130];
const MAP_FROM = 1.4; // shown where the picture is so many times the room, in either direction

class PictureMap {
  /**
   * @param {HTMLElement} stage
   * @param {(x: number, y: number) => void} go moves the middle of the view to a point of the picture
   */
  constructor(stage, go) {
    this.svg = shape("svg", { class: "map", role: "img", "aria-label": "The whole graph; a click or a drag moves the view" });
    this.boxes = shape("g");
    this.seen = shape("rect", { class: "seen" });
    /** @type {Picture | null} */
    this.picture = null;
    this.scale = 1;
    this.svg.append(this.boxes, this.seen);
    stage.append(this.svg);
    /** @param {PointerEvent} event */
    const move = (event) => {
      const { left, top } = this.svg.getBoundingClientRect();
      go((event.clientX - left) / this.scale, (event.clientY - top) / this.scale);
    };
    this.svg.addEventListener("pointerdown", (event) => { this.svg.setPointerCapture(event.pointerId); move(event); });
    this.svg.addEventListener("pointermove", (event) => { if (event.buttons) move(event); });
  }

  /** @param {Picture} picture */
  show(picture) {
    this.picture = picture;
    this.scale = Math.min(MAP_WIDTH / picture.width, MAP_HEIGHT / picture.height);
    setNumbers(this.svg, { width: picture.width * this.scale, height: picture.height * this.scale });
    const paths = { open: "", closed: "" };
    for (const { x, y, w, h, open } of picture.boxes.values()) {
      const [left, top, wide, high] = [x, y, w, h].map((length) => (length * this.scale).toFixed(1));
      paths[open ? "open" : "closed"] += `M${left} ${top}h${wide}v${high}h-${wide}z`;
    }
    this.boxes.replaceChildren(...Object.entries(paths).map(([kind, d]) => shape("path", { class: kind, d })));
  }

  /**
   * What of the picture is in sight; nothing is shown where that is all.
   * @param {View} view
   * @param {DOMRect} room
   */
  look({ x, y, scale }, { width, height }) {
    if (!this.picture) return;
    const [wide, high] = [width / scale, height / scale];
    this.svg.classList.toggle("needless", this.picture.width < wide * MAP_FROM && this.picture.height < high * MAP_FROM);
    const left = Math.max(0, -x / scale);
    const top = Math.max(0, -y / scale);
    const right = Math.min(this.picture.width, -x / scale + wide);
    const bottom = Math.min(this.picture.height, -y / scale + high);
    setNumbers(this.seen, {
      x: left * this.scale, y: top * this.scale,
      width: Math.max(2, (right - left) * this.scale), height: Math.max(2, (bottom - top) * this.scale),
    });
  }
}

/** @param {SVGElement} node @param {Record<string, number>} attributes */
function setNumbers(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
}
