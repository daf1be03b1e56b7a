// Where the arrow keys lead from a box.

/**
 * Where the keyboard starts: the upper left closed box.
 * @param {Model} model
 * @param {Picture} picture
 */
function firstBox(model, picture) {
  /** @param {Place} place */
  const lane = (place) => picture.boxes.get(~model.lane[model.parentOf(place.box)])?.x ?? 0;
  const places = [...picture.boxes.values()].filter((place) => !place.open);
  places.sort((a, b) => lane(a) - lane(b) || a.y - b.y || a.x - b.x);
  return places[0]?.box ?? null;
}

/**
 * The nearest box above (-1) or below (1) that a line joins with a box; what a box takes stands above
 * it, in the backward pass below.
 * @param {Picture} picture
 * @param {Place} here
 * @param {number} direction
 */
function alongLine(picture, here, direction) {
  const ends = picture.lines.flatMap(({ from, to, far }) => {
    const other = from === here.box ? to : to === here.box ? from : null;
    const place = other === null || far ? undefined : picture.boxes.get(other);
    return place && (place.y - here.y) * direction > 2 ? [place] : [];
  });
  ends.sort((a, b) => distance(here, a) - distance(here, b));
  return ends[0]?.box ?? null;
}

/**
 * The nearest closed box in a direction, one that stands in the same group first.
 * @param {Model} model
 * @param {Picture} picture
 * @param {Place} here
 * @param {number} dx
 * @param {number} dy
 */
function towards(model, picture, here, dx, dy) {
  const [x, y] = middleOf(here);
  const group = model.parentOf(here.box);
  let best = null;
  let least = Infinity;
  for (const place of picture.boxes.values()) {
    if (place.open || place.box === here.box) continue;
    const [px, py] = middleOf(place);
    const along = (px - x) * dx + (py - y) * dy;
    const across = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
    if (along <= 4) continue;
    const far = along + across * 3 + (model.parentOf(place.box) === group ? 0 : 400);
    if (far < least) [best, least] = [place.box, far];
  }
  return best;
}

/** @param {Place} a @param {Place} b */
function distance(a, b) {
  const [[ax, ay], [bx, by]] = [middleOf(a), middleOf(b)];
  return Math.hypot(ax - bx, (ay - by) * 1.5);
}
