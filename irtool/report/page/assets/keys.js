// The list of keys, over the graph.

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

class KeyList {
  /**
   * @param {HTMLElement} stage
   * @param {() => void} leave
   */
  constructor(stage, leave) {
    this.stage = stage;
    this.leave = leave;
    const rows = KEYS.flatMap(([keys, text]) => [element("dt", {}, element("kbd", {}, keys)), element("dd", {}, text)]);
    this.element = element("div", { class: "keys", role: "dialog", "aria-label": "Keys", tabindex: "-1",
      onclick: () => this.hide(), onkeydown: (event) => this.key(event) },
      element("h2", {}, "Keys"), element("dl", { class: "facts" }, ...rows),
      element("p", { class: "note" }, "Drag moves, the wheel zooms. Search takes words, and op:, name:, scope:, id: before one; a number is found as a whole."));
  }

  toggle() {
    if (this.hide()) return;
    this.stage.append(this.element);
    this.element.focus();
  }

  // Whether it was shown.
  hide() {
    if (!this.element.isConnected) return false;
    this.element.remove();
    this.leave();
    return true;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (!["Escape", "?", "Enter"].includes(event.key)) return;
    event.stopPropagation();
    this.hide();
  }
}
