// The whole picture in a corner: what is in sight, and a way to get elsewhere.

const [MAP_WIDTH, MAP_HEIGHT] = [180, 130];
const MAP_FROM = 1.4; // shown where the picture is so many times the room, in either direction

class PictureMap {
  // `go` moves the middle of the view to a point of the picture.
  constructor(stage, go) {
    this.svg = shape("svg", { class: "map", role: "img", "aria-label": "The whole graph; a click or a drag moves the view" });
    this.boxes = shape("g");
    this.seen = shape("rect", { class: "seen" });
    this.svg.append(this.boxes, this.seen);
    stage.append(this.svg);
    const move = (event) => {
      const { left, top } = this.svg.getBoundingClientRect();
      go((event.clientX - left) / this.scale, (event.clientY - top) / this.scale);
    };
    this.svg.addEventListener("pointerdown", (event) => { this.svg.setPointerCapture(event.pointerId); move(event); });
    this.svg.addEventListener("pointermove", (event) => { if (event.buttons) move(event); });
  }

  show(picture) {
    this.picture = picture;
    this.scale = Math.min(MAP_WIDTH / picture.width, MAP_HEIGHT / picture.height);
    this.svg.setAttribute("width", picture.width * this.scale);
    this.svg.setAttribute("height", picture.height * this.scale);
    const paths = { open: "", closed: "" };
    for (const { x, y, w, h, open } of picture.boxes.values()) {
      const [left, top, wide, high] = [x, y, w, h].map((length) => (length * this.scale).toFixed(1));
      paths[open ? "open" : "closed"] += `M${left} ${top}h${wide}v${high}h-${wide}z`;
    }
    this.boxes.replaceChildren(...Object.entries(paths).map(([kind, d]) => shape("path", { class: kind, d })));
  }

  // What of the picture is in sight; nothing is shown where that is all.
  look({ x, y, scale }, { width, height }) {
    if (!this.picture) return;
    const [wide, high] = [width / scale, height / scale];
    this.svg.classList.toggle("needless", this.picture.width < wide * MAP_FROM && this.picture.height < high * MAP_FROM);
    const left = Math.max(0, -x / scale);
    const top = Math.max(0, -y / scale);
    const right = Math.min(this.picture.width, -x / scale + wide);
    const bottom = Math.min(this.picture.height, -y / scale + high);
    this.seen.setAttribute("x", left * this.scale);
    this.seen.setAttribute("y", top * this.scale);
    this.seen.setAttribute("width", Math.max(2, (right - left) * this.scale));
    this.seen.setAttribute("height", Math.max(2, (bottom - top) * this.scale));
  }
}
