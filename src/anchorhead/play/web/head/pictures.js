/* The pictures of one head: function and head, error, scores, attention along s, and attention as a heat map. */

import { Chart } from "../chart.js";
import { panel } from "../controls.js";
import { element } from "../dom.js";
import { HeatMap } from "../heatmap.js";
import { shown, spread } from "../numbers.js";
import { DTYPES, attention, evaluate } from "../softmax.js";
import { anchorCount } from "./geometry.js";
import { scoreHandles, valueHandles } from "./handles.js";

const POINTS = 501;
const MAP_COLUMNS = 240;

export function headPictures(deed) {
  const sight = { x: { label: "s" } };
  const main = new Chart({ label: "Function and head", ...sight, y: { label: "value" }, height: 360 });
  const off = new Chart({ label: "Error", ...sight, y: { label: "function − head" }, height: 230 });
  const scores = new Chart({ label: "Scores", ...sight, y: { label: "slope · s + offset" }, height: 280 });
  const weights = new Chart({ label: "Attention weights", ...sight, y: { label: "weight" }, height: 230 });
  const map = new HeatMap({ label: "Attention as a heat map", ...sight, y: { label: "anchor" }, height: 230, meaning: "attention weight of each anchor (row) at each s (column)" });
  const verdict = element("p", { class: "verdict" });
  const handles = valueHandles(main, deed);
  const scoreGrips = scoreHandles(scores, deed);
  let seen = null; // what is drawn
  let frozen = null; // ranges while a handle is held: they must not run away under the pointer

  main.onrender = () => seen && handles.place();
  scores.onrender = () => seen && scoreGrips.place();

  const draw = (now) => {
    const { target, head, low, high, selected } = (seen = now);
    const s = spread(low, high, POINTS);
    const f = s.map(target.f);
    const r = evaluate(head, s);
    drawMain(s, f, r);
    drawError(s, f.map((value, k) => value - r[k]));
    drawScores(head, low, high, selected);
    drawWeights(head, s, selected);
  };

  const drawMain = (s, f, r) => {
    const { head, low, high, target } = seen;
    const [bottom, top] = frozen?.main ?? padded(valueRange(f, r, head));
    main.range([low, high], [bottom, top]);
    main.line("function", s, f, { class: "function" });
    main.line("head", s, r, { class: "head" });
    main.legend([
      { class: "function", name: target.words },
      { class: "head", name: "head" },
      { class: "c0", shape: "points", name: "anchors: drag up or down for the value, sideways to move where they act" },
      ...(beyond(head, bottom, top) ? [{ class: "c0 beyond", shape: "points", name: "dashed: the value lies beyond the picture" }] : []),
    ]);
    main.describe(`${target.words} and a head of ${anchorCount(head)} anchors on [${shown(low)}, ${shown(high)}]. ${verdict.textContent}`);
    main.tooltip((at) => [["s", shown(at)], [short(target.words), shown(target.f(at), 6)], ["head", shown(evaluate(head, [at])[0], 6)]]);
    main.render();
  };

  const drawError = (s, e) => {
    const { bound, measured, low, high, target, head } = seen;
    const most = Math.max(bound ?? 0, measured.error) || 1e-16;
    off.range([low, high], frozen?.off ?? [-1.25 * most, 1.25 * most]);
    const level = bound ?? measured.error;
    if (bound !== null) off.band("proven", [low, high], [-bound, -bound], [bound, bound], { class: "proven" });
    else off.remove("proven");
    for (const [name, at] of [["above", level], ["below", -level]]) off.line(name, [low, high], [at, at], { class: `thin ${bound !== null ? "bound" : "dashed"}` });
    off.line("error", s, e, { class: "error" });
    off.legend([
      { class: "error", name: "function − head" },
      bound !== null ? { class: "proven", shape: "band", name: "proven band: no error leaves it" } : { class: "thin dashed", name: "largest error found (measured, not proven)" },
    ]);
    off.describe(verdict.textContent);
    off.tooltip((at) => [["s", shown(at)], ["error", shown(target.f(at) - evaluate(head, [at])[0])]]);
    off.render();
  };

  const drawScores = (head, low, high, selected) => {
    const lines = head.parts.flatMap((part) => part.slopes.map((slope, k) => [low, high].map((s) => slope * (s - head.origin) + part.offsets[k])));
    const envelope = spread(low, high, 41).map((s) => Math.max(...lines.map(([from, to]) => from + ((s - low) / (high - low)) * (to - from))));
    const [least, most] = [Math.min(...envelope), Math.max(...envelope)];
    const mine = lines[selected];
    const room = most - least || 1;
    scores.range([low, high], frozen?.scores ?? padded([Math.min(least, Math.max(least - room, Math.min(...mine))), most]));
    keep(scores, "line", lines.length);
    lines.forEach((ends, n) => scores.line(`line ${n}`, [low, high], ends, { class: `c${n % 7} ${n === selected ? "chosen" : "thin"}` }));
    scores.legend([
      { class: `c${selected % 7} chosen`, name: `anchor ${selected + 1}` },
      { class: `c${selected % 7}`, shape: "points", name: "round handle: offset, square handle: slope" },
    ]);
    scores.describe(`Scores of ${lines.length} anchors: straight lines; the highest gets most of the attention.`);
    scores.render();
  };

  const drawWeights = (head, s, selected) => {
    const { low, high } = seen;
    const { round } = DTYPES[head.dtype];
    const count = anchorCount(head);
    const at = (place) => head.parts.flatMap((part) => Array.from(attention(part, head.origin, place, round)));
    const few = spread(low, high, 251);
    const rows = Array.from(few, at);
    weights.range([low, high], [0, 1]);
    keep(weights, "weight", count);
    for (let n = 0; n < count; n += 1) weights.line(`weight ${n}`, few, rows.map((row) => row[n]), { class: `c${n % 7} ${n === selected ? "chosen" : "thin"}` });
    weights.legend([{ class: `c${selected % 7} chosen`, name: `anchor ${selected + 1}` }, { class: "c0 thin", name: "the others" }]);
    weights.describe(`Attention weights of ${count} anchors along s.`);
    weights.tooltip((place) => {
      const now = at(place);
      const largest = now.map((weight, n) => [weight, n]).sort((a, b) => b[0] - a[0]).slice(0, 4);
      return [["s", shown(place)], ...largest.map(([weight, n]) => [`anchor ${n + 1}`, weight.toFixed(3)])];
    });
    weights.render();
    const cells = new Float64Array(count * MAP_COLUMNS);
    spread(low, high, MAP_COLUMNS).forEach((place, column) => at(place).forEach((weight, n) => (cells[n * MAP_COLUMNS + column] = weight)));
    map.chart.axes.y.ticks = anchorTicks(count);
    map.chart.describe(`Heat map of attention: ${count} anchors by s. Each column adds up to ${head.parts.length}.`);
    map.draw(cells, count, MAP_COLUMNS, { x: [low, high], y: [0.5, count + 0.5] });
  };

  const mainPanel = panel(
    "Function and head",
    "Each anchor is a key with a value. At a point s the softmax of all scores says how much attention each anchor gets, and the head is the mix of their values.",
    main.element, verdict,
  );
  mainPanel.classList.add("wide");
  return {
    elements: [
      mainPanel,
      panel("Error", "What is left between the two. A proven band holds for every s, with all rounding; a measured one is the worst that was found.", off.element),
      panel("Scores", "The score of an anchor is a straight line in s. The highest line wins, softly: where two lines cross, attention is shared. Even anchors are tangents of a parabola.", scores.element),
      panel("Attention along s", "Softmax turns scores into weights that add up to 1. Sharper scores make steeper steps.", weights.element),
      panel("Attention as a heat map", "The same weights seen from above: the stronger the colour, the more an anchor is listened to.", map.element),
    ],
    verdict,
    main,
    draw,
    freeze: () => (frozen = { main: main.bounds.y, off: null, scores: scores.bounds.y }),
    thaw: () => (frozen = null),
    focusAnchor: handles.focus,
  };
}

/** Items of a chart whose anchors are gone go, too. */
function keep(chart, word, count) {
  for (const key of chart.keys(word)) if (Number(key.split(" ")[1]) >= count) chart.remove(key);
}

function valueRange(f, r, head) {
  const all = [...f, ...r].filter(Number.isFinite);
  const [least, most] = [Math.min(...all), Math.max(...all)];
  const room = most - least || 1;
  // values beyond are marked at the edge: one of 10,000 would flatten the curve to a line
  const values = head.parts.flatMap((part) => part.values).filter((value) => value > least - room / 2 && value < most + room / 2);
  return [Math.min(least, ...values), Math.max(most, ...values)];
}

function beyond(head, bottom, top) {
  return head.parts.some((part) => part.values.some((value) => value < bottom || value > top));
}

function padded([low, high]) {
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  return [low - room, high + room];
}

function anchorTicks(count) {
  const step = Math.max(1, Math.ceil(count / 8));
  return Array.from({ length: Math.ceil(count / step) }, (_, k) => 1 + k * step);
}

function short(words) {
  return words.length > 14 ? "function" : words;
}
