// What the scripts of a page hand to each other.  No page ships this file: the type checker reads it.

/** A point of a picture in pixels at scale 1. */
type Point = [x: number, y: number];

interface Position {
  x: number;
  y: number;
}

// -- layout of one group ----------------------------------------------------------------------------

/** The edge of a group that a line crosses. */
type Side = "top" | "bottom";

/** A box of a group, or a port: a point on the group's edge through which lines leave it. */
interface LayoutBox {
  w: number;
  h: number;
  port: Side | null;
}

/** A line between cells of neighbouring ranks, by their numbers; the x are from a box's middle. */
interface LayoutLink {
  from: number;
  to: number;
  fromX: number;
  toX: number;
  weight: number;
}

/** A line between two boxes, from above to below; `back`: its value goes the other way. */
interface LayoutEdge extends LayoutLink {
  back: boolean;
}

/** Middles of the boxes, and the points that each edge runs through. */
interface Layout {
  width: number;
  height: number;
  places: Position[];
  routes: Point[][];
}

/** A box within its part, or (not `real`) the place of a long line in a rank that it passes. */
interface Cell extends LayoutBox {
  index: number;
  real: boolean;
  up: LayoutLink[];
  down: LayoutLink[];
  rank: number;
  order: number;
  x: number;
  y: number;
  offset: number;
}

/** An edge within its part, and its number among the edges of the group. */
interface PartEdge extends LayoutEdge {
  index: number;
}

/** A laid out part: middles and routes with the numbers of their boxes and edges. */
interface PartLayout {
  width: number;
  height: number;
  places: [box: number, place: Position][];
  routes: [edge: number, route: Point[]][];
}
