// What the scripts of a page hand to each other.  No page ships this file: the type checker reads it.

/** A point of a picture in pixels at scale 1. */
type Point = [x: number, y: number];

interface Position {
  x: number;
  y: number;
}

// -- every page -------------------------------------------------------------------------------------

/** What irtool/report/page/write.py packs into a page. */
interface PageData {
  /** Rows of each table. */
  tables: CellData[][][];
  graph: GraphData | null;
}

/** As cell_parts of irtool/report/page/cells.py: `key`: what it sorts by, or null: by its text. */
type CellData = [text: string, key: number | null, node: string | null];

/** The graph of a page, as links to its nodes see it. */
interface NodeView {
  has: (key: string) => boolean;
  show: (key: string) => void;
}

/** Attributes and listeners of a new element; one that is false, null or undefined is left out. */
interface Attributes {
  class?: string;
  id?: string;
  type?: "button" | "checkbox" | "search";
  title?: string;
  value?: string;
  placeholder?: string;
  role?: string;
  autocomplete?: "off";
  spellcheck?: "false";
  tabindex?: string;
  hidden?: boolean;
  [aria: `aria-${string}`]: string;
  [data: `data-${string}`]: string;
  onclick?: (event: MouseEvent) => void;
  onpointerdown?: (event: PointerEvent) => void;
  onkeydown?: (event: KeyboardEvent) => void;
  oninput?: () => void;
  onchange?: () => void;
}

// -- the data of a graph: what irtool/report/page/graph/data.py writes ------------------------------
// Members (statements and parameters) and groups are numbers, and so are texts: places in `strings`.

interface GraphData {
  first?: number;
  /** As in irtool/report/picture/classes.py. */
  classes: [key: string, title: string, colour: string][];
  nodes: NodeColumns;
  /** What each member takes, three numbers each: producer, operand, kind (1: a called graph's result). */
  edges: number[][];
  groups: GroupColumns;
  ties: [left: number, right: number, kind: number, certain: number][];
  links: [from: number, to: number, word: number][];
  notes: [from: number, to: number, text: number][];
  overlays: OverlayData[];
  strings: string[];
}

type TextColumn = "id" | "key" | "op" | "name" | "phase" | "type" | "under" | "slice" | "brings";
type NumberColumn = "class" | "stage" | "line" | "bytes" | "pick" | "kind" | "group";
type NodeColumns = Record<TextColumn | NumberColumn, number[]> & {
  /** Labels and values in turn. */
  facts: number[][];
};
type GroupTextColumn = "name" | "path" | "note";
type GroupColumns = Record<GroupTextColumn | "parent", number[]>;

/** Overlay of irtool/report/picture/overlay.py. */
interface OverlayData {
  topic: string;
  title: string;
  unit: string;
  total: "sum" | "max";
  marks: [node: number, value: number | null, severity: number, text: number][];
  unplaced: string[];
}

// -- what a graph shows -----------------------------------------------------------------------------
// A box is the number of a member, or ~number of a group.

/** What a member takes or gives; `word` is what a link between dumps is. */
interface Operand {
  node: number;
  position: number;
  kind: number;
  word?: string;
}

interface Partner {
  to: number;
  kind: string;
  certain: boolean;
  /** Whether this member is the original of the two. */
  first: boolean;
}

/** All values that go from one box to another. */
interface Line {
  from: number;
  to: number;
  values: number[];
  kind: number;
  notes: string[];
  word: string | undefined;
  /** Whether it leads into another lane. */
  far: boolean;
}

interface DrawnLine extends Line {
  points: Point[];
  /** Whether it runs from left to right. */
  across: boolean;
}

/** Where a box is drawn. */
interface Place extends Position {
  box: number;
  w: number;
  h: number;
  open: boolean;
  depth: number;
}

interface Picture {
  boxes: Map<number, Place>;
  lines: DrawnLine[];
  width: number;
  height: number;
}

/** Size of a closed box; `title`: the least width of its title when it is open. */
interface BoxSize {
  w: number;
  h: number;
  title: number;
}

// -- how a picture comes about: groups, ports and edges ---------------------------------------------

/** What stands right inside an open group, and the lines among that. */
interface Level {
  group: number;
  children: { box: number; first: number }[];
  /** Place of each box among the children. */
  number: Map<number, number>;
  ports: Map<string, Port>;
  pairs: Map<string, Pair>;
  edges: Map<string, LevelEdge>;
  /** Whether its children stand side by side. */
  row: boolean;
  shift: number;
  boxes: LayoutBox[];
  places: Position[];
}

/** Two children that lines join; `back`: from below to above. */
interface Pair {
  a: number;
  b: number;
  back: boolean;
}

/** Where lines from one child leave or enter its group; `pin`: the port of that child they run on from. */
interface Port {
  group: number;
  key: string;
  child: number;
  pin: Port | null;
  side: Side;
  number: number;
  x: number;
  route: Point[];
}

/** Lines between two children that take the same ports. */
interface LevelEdge {
  pair: Pair;
  outPin: Port | null;
  inPin: Port | null;
  count: number;
  route: Point[];
}

/** Where a line runs: up to the innermost group that holds both of its ends, and down again. */
interface Track {
  line: Line;
  /** Its end and the groups around that, up to a child of the common group. */
  up: number[];
  down: number[];
  level: Level;
  pair: Pair;
}

/** A track with its ports, from the ends of the line to the common group. */
interface Lead extends Track {
  out: Port[];
  in: Port[];
  edge: LevelEdge;
}

/** An edge to be laid out, and what its route belongs to. */
interface Join {
  edge: LayoutEdge;
  owner: LevelEdge | Port;
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

// -- how it looks -----------------------------------------------------------------------------------

/** OverlaySeverity of irtool/report/picture/overlay.py; "": a mark that is a number alone. */
type Severity = "error" | "warning" | "info" | "first" | "added" | "removed" | "changed" | "good";

interface Mark {
  value: number | null;
  severity: Severity | "";
  text: string;
}

interface Label {
  kind: string;
  title: string;
  under: string;
  /** What a screen reader says. */
  spoken: string;
  badges: Badge[];
}

type Badge = [kind: string, text: string];

/** What a group holds, all the way down. */
interface Sums {
  statements: number;
  collectives: number;
  bytes: number;
  ops: Map<string, number>;
  severities: Partial<Record<Severity, number>>;
}

interface Swatch {
  fill: string | null;
  text: string;
  kind: string;
}

// -- the drawing ------------------------------------------------------------------------------------

type Layer = "frames" | "lines" | "boxes";

/** What of the picture is in sight: where its corner is on the screen, and how large it is. */
interface View extends Position {
  scale: number;
}

interface Bounds {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** A box or line of a picture, which is in the page while it is in sight. */
interface DrawnItem {
  key: string;
  layer: Layer;
  bounds: Bounds;
  draw: () => SVGElement;
  paint: (node: SVGElement) => void;
}

/** A text on a line; `up`: it makes room upwards where it would cover another. */
interface Word extends Position {
  text: string;
  up: boolean;
}

// -- the graph on the page --------------------------------------------------------------------------

type SearchField = "op" | "name" | "scope" | "id";
/** What search looks at of a member, in lower case. */
type SearchEntry = Record<SearchField | "all", string>;

interface SearchActions {
  /** Other members match now. */
  matched: () => void;
  take: (node: number) => void;
  leave: () => void;
}

/** How the view moves to a box that is chosen: to its middle, just into sight, not at all. */
type Move = "centre" | "near" | "stay";

interface PanelActions {
  choose: (box: number | null, move?: Move) => void;
  visit: (node: number) => void;
  toggle: (group: number) => void;
  expandStep: (group: number) => void;
  zoomTo: (group: number) => void;
  leave: () => void;
}

interface PointerActions {
  pan: (dx: number, dy: number) => void;
  /** Around a point of the graph's own area. */
  zoom: (factor: number, x: number, y: number) => void;
  click: (event: MouseEvent) => void;
  doubleClick: (event: MouseEvent, x: number, y: number) => void;
}
