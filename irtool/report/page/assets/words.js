// What stands between the boxes while one of them is chosen: words on its lines, and ties to partners.

const MOST_LINES_WITH_WORDS = 24;
const [LETTER, WORD_HEIGHT] = [6, 18];

/**
 * Types on the lines of the chosen box, or what else is known of them.
 * @param {Model} model
 * @param {Picture} picture
 * @param {number} chosen
 */
function wordsOf(model, picture, chosen) {
  const lines = picture.lines.filter((line) => line.from === chosen || line.to === chosen);
  /** @type {Word[]} */
  const words = [];
  if (lines.length > MOST_LINES_WITH_WORDS) return words;
  for (const line of lines) {
    const text = wordOf(model, line);
    if (!text) continue;
    const [start, end] = line.from === chosen ? line.points.slice(0, 2) : line.points.slice(-2);
    words.push({ text: shorten(text, 60), x: (start[0] + end[0]) / 2, y: (start[1] + end[1]) / 2, up: line.to === chosen });
  }
  spreadWords(words);
  return words;
}

/** @param {Model} model @param {Line} line */
function wordOf(model, line) {
  const [note] = line.notes;
  if (note !== undefined || line.word !== undefined) return note ?? line.word;
  const types = new Set(line.values.map((node) => slicedType(model, node)).filter(Boolean));
  return types.size > 1 ? `${line.values.length} values` : [...types][0];
}

/**
 * The type of a value, and what a device holds of it where that is known.
 * @param {Model} model
 * @param {number} node
 */
function slicedType(model, node) {
  const slice = model.text("slice", node);
  return model.text("type", node) + (slice ? ` → ${slice}` : "");
}

/**
 * Words that would cover each other move apart: those above the box upwards, others down.
 * @param {Word[]} words
 */
function spreadWords(words) {
  /** @param {Word} word */
  const width = (word) => word.text.length * LETTER + 14;
  /** @type {Word[]} */
  const placed = [];
  for (const word of words) {
    /** @param {Word} other */
    const covers = (other) => Math.abs(word.x - other.x) < (width(word) + width(other)) / 2 && Math.abs(word.y - other.y) < WORD_HEIGHT;
    for (let step = 0; step < 24 && placed.some(covers); step++) word.y += word.up ? -WORD_HEIGHT : WORD_HEIGHT;
    placed.push(word);
  }
}

/**
 * Paths from the chosen box to its partners.
 * @param {Picture} picture
 * @param {number} chosen
 * @param {Iterable<number>} partners
 */
function tiesOf(picture, chosen, partners) {
  const own = picture.boxes.get(chosen);
  /** @type {string[]} */
  const ties = [];
  if (!own) return ties;
  for (const box of partners) {
    const other = picture.boxes.get(box);
    if (!other || box === chosen) continue;
    const [[x0, y0], [x1, y1]] = [middleOf(own), middleOf(other)];
    ties.push(`M${x0} ${y0}Q${(x0 + x1) / 2 + (y1 - y0) * 0.12} ${(y0 + y1) / 2} ${x1} ${y1}`);
  }
  return ties;
}

/**
 * @param {Place} place
 * @returns {Point}
 */
function middleOf(place) {
  return [place.x + place.w / 2, place.y + place.h / 2];
}
