// Mouse, pen and fingers on the graph: drag, pinch, wheel, click.

const CLICK_REACH = 4; // pixels that a click may move

class Pointer {
  /**
   * @param {SVGSVGElement} svg
   * @param {PointerActions} actions
   */
  constructor(svg, actions) {
    this.svg = svg;
    this.actions = actions;
    /** @type {Map<number, Point>} */
    this.held = new Map();
    this.moved = false;
    this.span = 0;
    svg.addEventListener("pointerdown", (event) => this.press(event));
    svg.addEventListener("pointermove", (event) => this.move(event));
    svg.addEventListener("pointerup", (event) => this.release(event));
    svg.addEventListener("pointercancel", (event) => this.release(event));
    svg.addEventListener("dblclick", (event) => actions.doubleClick(event, ...this.local(event)));
    svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  /**
   * @param {MouseEvent} event
   * @returns {Point}
   */
  local(event) {
    const { left, top } = this.svg.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  }

  /** @param {PointerEvent} event */
  press(event) {
    this.held.set(event.pointerId, this.local(event));
    this.moved = false;
    this.span = 0;
  }

  /** @param {PointerEvent} event */
  move(event) {
    const before = this.held.get(event.pointerId);
    if (!before) return;
    const [x, y] = this.local(event);
    const [dx, dy] = [x - before[0], y - before[1]];
    if (!this.moved && Math.hypot(dx, dy) < CLICK_REACH) return;
    if (!this.moved) {
      this.moved = true;
      this.svg.classList.add("dragging");
      this.svg.setPointerCapture(event.pointerId);
    }
    this.held.set(event.pointerId, [x, y]);
    if (this.held.size === 1) this.actions.pan(dx, dy);
    else this.pinch();
  }

  pinch() {
    const [[ax, ay], [bx, by]] = [...this.held.values()];
    const span = Math.hypot(ax - bx, ay - by);
    if (this.span) this.actions.zoom(span / this.span, (ax + bx) / 2, (ay + by) / 2);
    this.span = span;
  }

  /** @param {PointerEvent} event */
  release(event) {
    if (!this.held.delete(event.pointerId)) return;
    this.svg.classList.remove("dragging");
    if (!this.moved && event.type === "pointerup") this.actions.click(event);
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    event.preventDefault();
    const step = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (event.shiftKey) this.actions.pan(-(event.deltaX || event.deltaY) * step, 0);
    else this.actions.zoom(Math.exp(-event.deltaY * step * (event.ctrlKey ? 0.01 : 0.0016)), ...this.local(event));
  }
}
