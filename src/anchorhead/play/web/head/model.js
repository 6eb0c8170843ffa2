/* What the view "One head" shows, as plain data; what a link brings is checked here, entry by entry.

   source     "named", "expression" or "drawn", with name, text and drawn: three are kept, one is used
   low, high  the interval
   dtype      "float64", "float32" or "bfloat16"
   placement  "uniform", "solved" or "own"
   count, c   how many anchors; the sharpness of even anchors
   own        the head, when anchors were moved by hand: { origin, bias, parts }
   selected   the anchor in hand, counted through all parts */

import { parse } from "../expression.js";
import { named } from "../functions.js";
import { DTYPES, rounded, uniformHead } from "../softmax.js";
import { solve } from "../solver.js";
import { NAMED, provenHead, provenIntervals } from "../tables.js";

export const MIN_ANCHORS = 2;
export const MAX_ANCHORS = 64;
export const SHARPNESS = [0.1, 20];
export const STROKES = 65; // points of a drawn function, straight between them
const FARTHEST = 1e6;

export const SOURCES = ["named", "expression", "drawn"];
export const PLACEMENTS = ["uniform", "solved", "own"];

/** What is there at first: visible errors, on an interval for which proven heads are known. */
export function firstModel() {
  return {
    source: "named",
    name: "gelu",
    text: "sin(3*x)*exp(-x**2/4)",
    drawn: Array.from({ length: STROKES }, (_, k) => Number((0.8 * Math.sin((k / (STROKES - 1)) * 6.2832)).toFixed(3))),
    low: -10,
    high: 10,
    dtype: "float64",
    placement: "uniform",
    count: 9,
    c: 2,
    own: null,
    selected: 4,
  };
}

/** The model that a link describes; what is missing or makes no sense is as at first. */
export function fromState(state) {
  const model = firstModel();
  if (state === null || typeof state !== "object") return model;
  const among = (list, value, other) => (list.includes(value) ? value : other);
  const between = (value, low, high, other) => (Number.isFinite(value) && value >= low && value <= high ? value : other);
  model.source = among(SOURCES, state.source, model.source);
  model.name = among(usableNames(), state.name, model.name);
  if (typeof state.text === "string" && state.text.length <= 2000) model.text = state.text;
  if (Array.isArray(state.drawn) && state.drawn.length === STROKES && state.drawn.every((y) => Number.isFinite(y) && Math.abs(y) <= 1)) model.drawn = state.drawn;
  const [low, high] = [between(state.low, -FARTHEST, FARTHEST, NaN), between(state.high, -FARTHEST, FARTHEST, NaN)];
  if (low < high) [model.low, model.high] = [low, high];
  model.dtype = among(Object.keys(DTYPES), state.dtype, model.dtype);
  model.placement = among(PLACEMENTS, state.placement, model.placement);
  model.count = Math.round(between(state.count, MIN_ANCHORS, MAX_ANCHORS, model.count));
  model.c = between(state.c, ...SHARPNESS, model.c);
  model.own = ownOf(state.own);
  if (model.placement === "own" && !model.own) model.placement = "uniform";
  model.selected = Math.round(between(state.selected, 0, MAX_ANCHORS - 1, 0));
  return model;
}

/** What a link holds: of three sources the one that is used, weights only if they were set by hand. */
export function toState(model) {
  const { source, low, high, dtype, placement, count, c, selected } = model;
  const used = { named: { name: model.name }, expression: { text: model.text }, drawn: { drawn: model.drawn } }[source];
  const own = placement === "own" ? { own: model.own } : {};
  return { source, ...used, low, high, dtype, placement, count, c, selected, ...own };
}

function ownOf(given) {
  const good = (list) => Array.isArray(list) && list.every(Number.isFinite);
  if (!given || !Number.isFinite(given.origin) || !Number.isFinite(given.bias) || !Array.isArray(given.parts)) return null;
  const parts = given.parts.filter((part) => part && good(part.slopes) && good(part.offsets) && good(part.values));
  const even = parts.every((part) => part.slopes.length > 0 && part.offsets.length === part.slopes.length && part.values.length === part.slopes.length);
  const count = parts.reduce((sum, part) => sum + part.slopes.length, 0);
  if (!even || parts.length !== given.parts.length || count < 1 || count > MAX_ANCHORS) return null;
  return { origin: given.origin, bias: given.bias, parts: parts.map(({ slopes, offsets, values }) => ({ slopes, offsets, values })) };
}

/** Named functions that need no parameters. */
export function usableNames() {
  return [...NAMED.values()].filter((one) => one.parameters.every(([, value]) => value !== null)).map((one) => one.name);
}

/** The smallest interval on which proven heads of a function are known, or where it is at home. */
export function usualInterval(name) {
  return provenIntervals(name)[0] ?? [-1, 1];
}

/** { f, name, words, python }: the function, its name if it has one, how it is called, and how Python is told.

    An ExpressionError if the text is none. */
export function targetOf({ source, name, text, drawn, low, high }) {
  if (source === "named") return { f: named(name), name, words: name, python: JSON.stringify(name) };
  if (source === "expression") {
    const found = parse(text);
    return { ...found, words: found.name ?? text.trim(), python: JSON.stringify(found.name ?? text.trim()) };
  }
  const step = (high - low) / (STROKES - 1);
  const f = (s) => {
    const place = Math.min(STROKES - 1, Math.max(0, (s - low) / step));
    const k = Math.min(STROKES - 2, Math.floor(place));
    return drawn[k] + (place - k) * (drawn[k + 1] - drawn[k]);
  };
  return { f, name: null, words: "the drawn function", python: null };
}

/** Where a function has no finite value on the interval; null if it has one at all points that are looked at. */
export function undefinedAt(f, low, high) {
  for (let k = 0; k <= 400; k += 1) {
    const s = k === 400 ? high : low + (k * (high - low)) / 400;
    if (!Number.isFinite(f(s))) return s;
  }
  return null;
}

/** Whether finding the head takes long enough to wait for a pause. */
export function needsSolving(model, target) {
  return model.placement === "solved" && !provenFor(model, target);
}

function provenFor({ low, high, dtype, count }, { name }) {
  return name ? provenHead(name, low, high, dtype, count) : null;
}

/** { head, bound }: the head, and its proven bound, or null if none is known. */
export function headOf(model, target) {
  const { placement, low, high, count, c, dtype } = model;
  if (placement === "own") return { head: rounded(model.own, dtype), bound: null };
  if (placement === "uniform") return { head: uniformHead(target.f, low, high, count, c, dtype), bound: null };
  return provenFor(model, target) ?? { head: solve(target.f, low, high, count, dtype, c), bound: null };
}
