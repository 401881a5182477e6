/** Line charts as SVG, each with its figures as a table. */

import { count, h, svg } from "./dom.js";

// Size of the drawing in its own units, at most; the page scales it. In a narrow window it is drawn
// narrower instead, so that its letters keep their size.
const WIDEST = 520;
const NARROWEST = 280;
const HEIGHT = 300;
const MARGIN = { left: 64, right: 16, top: 12, bottom: 48 };
// Points drawn of a long series; more would lie on the same pixels.
const MOST_POINTS = 1000;
// Rows of the table beside a chart.
const MOST_ROWS = 25;

/** Round values from `low` to `high`, about five of them. */
function ticks(low, high, whole) {
  const raw = (high - low) / 5 || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  let step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
  if (whole) step = Math.max(1, step);
  const values = [];
  for (let number = Math.ceil(low / step - 1e-9); number * step <= high + 1e-9; number++) {
    values.push(Number((number * step).toPrecision(12)));
  }
  return values;
}

/** At most `most` of the points, with the first and the last. */
export function thinned(points, most) {
  if (points.length <= most) return points;
  const every = (points.length - 1) / (most - 1);
  return Array.from({ length: most }, (_, number) => points[Math.round(number * every)]);
}

/**
 * Chart of a series, with a table of its figures.
 *
 * @param {{points: number[][], x: string, y: string, title: string, limits: number[][],
 *   format?: (value: number) => string, formatX?: (value: number) => string, steps?: boolean,
 *   mark?: {at: number, text: string}}} options `limits`: [[x low, x high], [y low, y high]];
 *   `mark`: a horizontal line
 */
export function lineChart(options) {
  const { points, x, y, title, limits, steps = false, mark } = options;
  const format = options.format ?? count;
  const formatX = options.formatX ?? count;
  const [[x0, x1], [y0, y1]] = limits;
  const width = Math.max(NARROWEST, Math.min(WIDEST, window.innerWidth - 40));
  const px = (value) => MARGIN.left
    + ((value - x0) / (x1 - x0 || 1)) * (width - MARGIN.left - MARGIN.right);
  const py = (value) => HEIGHT - MARGIN.bottom
    - ((value - y0) / (y1 - y0 || 1)) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const drawn = thinned(points, MOST_POINTS);
  let path = "";
  for (const [number, [a, b]] of drawn.entries()) {
    if (number === 0) path += `M${px(a)} ${py(b)}`;
    else path += steps ? `H${px(a)}V${py(b)}` : `L${px(a)} ${py(b)}`;
  }
  const bottom = HEIGHT - MARGIN.bottom;
  const whole = !options.format;
  const picture = svg("svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": title, class: "chart" },
    ticks(y0, y1, whole).map((value) => [
      svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: py(value), y2: py(value) }),
      svg("text", { x: MARGIN.left - 8, y: py(value) + 4, "text-anchor": "end" }, format(value)),
    ]),
    ticks(x0, x1, !options.formatX).map((value) => [
      svg("line", { class: "axis", x1: px(value), x2: px(value), y1: bottom, y2: bottom + 5 }),
      svg("text", { x: px(value), y: bottom + 20, "text-anchor": "middle" }, formatX(value)),
    ]),
    svg("line", { class: "axis", x1: MARGIN.left, x2: width - MARGIN.right, y1: bottom, y2: bottom }),
    mark ? [
      svg("line", { class: "mark", x1: MARGIN.left, x2: width - MARGIN.right, y1: py(mark.at), y2: py(mark.at) }),
      svg("text", { class: "mark-text", x: width - MARGIN.right - 6, y: py(mark.at) + 18,
        "text-anchor": "end" }, mark.text),
    ] : [],
    svg("path", { class: "series", d: path }),
    svg("text", { class: "axis-title", x: (width + MARGIN.left) / 2, y: HEIGHT - 6,
      "text-anchor": "middle" }, x),
    svg("text", { class: "axis-title", transform: `translate(14 ${(bottom + MARGIN.top) / 2}) rotate(-90)`,
      "text-anchor": "middle" }, y));
  return h("figure", {}, h("figcaption", {}, title), picture,
    figures(thinned(points, MOST_ROWS), x, y, formatX, format));
}

function figures(points, x, y, formatX, format) {
  return h("details", { class: "figures" }, h("summary", {}, "Figures as a table"),
    h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, x), h("th", { scope: "col" }, y))),
      h("tbody", {}, points.map(([a, b]) => h("tr", {},
        h("td", { class: "number" }, formatX(a)), h("td", { class: "number" }, format(b)))))));
}
