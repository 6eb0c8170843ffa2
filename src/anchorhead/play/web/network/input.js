/* What goes into a network: a field and a slider for every number, or a list of rows where there are many.

   A learner takes examples; its tokens, each example once with either sign, are made from them. */

import { element, newId } from "../dom.js";
import { prompt } from "./prompt.js";

const MAX_FIELDS = 24;
const ROWS = 4; // rows of tokens or examples where any number may be given
const MAX_TEXT = 200000;

/**
 * {element, entries, rows(), tokens(rows), problem()}; entries {name, i, j, ends} where each number has a field of its own.
 * `given` may be what rows() gave for this network before.
 */
export function inputEditor(opened, given, changed) {
  const wanted = shapeOf(opened);
  const rows = fits(given, wanted) ? given.map((row) => [...row]) : defaults(opened, wanted);
  const editor = wanted.count !== null && wanted.count * wanted.names.length <= MAX_FIELDS ? fields : listing;
  return editor(wanted, rows, changed);
}

/** What one row holds, and how many rows there are: {names, count, low, high, toTokens, words}. */
function shapeOf({ network, target, certificate, names }) {
  const first = network.layers[0];
  const [low, high] = certificate ? [certificate.low, certificate.high] : [[[-1]], [[1]]];
  const even = first.tokens === null || first.tokens % 2 === 0;
  const learner = target?.kind === "descent" && names.at(-1) === "label" && even;
  if (learner) {
    const few = names.length - 2;
    const ends = (rows) => [[...rows[0].slice(0, few), rows[0].at(-1)]];
    return {
      names: [...names.slice(0, few), "y"],
      count: first.tokens === null ? null : first.tokens / 2,
      word: "example",
      low: ends(low),
      high: ends(high),
      toTokens: (rows) => prompt(rows, target.data.loss?.form),
      loss: String(target.data.loss?.name),
    };
  }
  return { names, count: first.tokens, word: "token", low, high, toTokens: (rows) => rows, loss: "" };
}

function fits(given, wanted) {
  const size = wanted.names.length;
  const right = (row) => Array.isArray(row) && row.length === size && row.every(Number.isFinite);
  return (
    Array.isArray(given) && given.length > 0 && given.every(right) && given.length === (wanted.count ?? given.length)
  );
}

/** Numbers inside the box, all different; labels as a loss takes them. */
function defaults(opened, wanted) {
  const count = wanted.count ?? ROWS;
  const labels = { logistic: (i) => i % 2, hinge: (i) => 2 * (i % 2) - 1, poisson: (i) => i % 3 };
  const small = (x) => Number(x.toPrecision(3));
  return Array.from({ length: count }, (_, i) =>
    wanted.names.map((_, j) => {
      if (j === wanted.names.length - 1 && Object.hasOwn(labels, wanted.loss)) return labels[wanted.loss](i);
      const [low, high] = ends(wanted, i, j);
      return small(low + (high - low) * ((0.57 + 0.618034 * (i * wanted.names.length + j)) % 1));
    }),
  );
}

function ends({ low, high }, i, j) {
  const at = (rows) => rows[Math.min(i, rows.length - 1)][Math.min(j, rows[0].length - 1)];
  return [at(low), at(high)];
}

function fields(wanted, rows, changed) {
  const many = rows.length > 1;
  const places = rows.flatMap((row, i) => row.map((_, j) => ({ i, j, ends: ends(wanted, i, j) })));
  const entries = places.map((one) => ({
    ...one,
    name: `${wanted.names[one.j]}${many ? ` of ${wanted.word} ${one.i}` : ""}`,
  }));
  const made = entries.map(({ i, j, ends: [low, high], name }) =>
    entry(name, low, high, rows[i][j], (value) => {
      rows[i][j] = value;
      changed();
    }),
  );
  const box = element(
    "div",
    { class: "entries" },
    made.map((one) => one.element),
  );
  const problem = () => (made.every((one) => one.good()) ? null : "A field holds no number.");
  return { element: box, entries, rows: () => rows, tokens: (other = rows) => wanted.toTokens(other), problem };
}

/** A number in a field of its own and on a slider, which moves within the box. */
function entry(name, low, high, value, changed) {
  const id = newId("entry");
  const number = element("input", { type: "number", step: "any", id, value });
  const range = element("input", {
    type: "range",
    min: low,
    max: high,
    step: (high - low) / 1000 || "any",
    "aria-label": `${name}, slider`,
  });
  range.value = value;
  const good = () => number.value.trim() !== "" && Number.isFinite(Number(number.value));
  number.addEventListener("input", () => {
    number.setAttribute("aria-invalid", String(!good()));
    if (good()) range.value = number.value;
    changed(good() ? Number(number.value) : Number.NaN);
  });
  range.addEventListener("input", () => {
    const at = Number(range.value);
    number.value = at >= high ? high : at <= low ? low : Number(at.toPrecision(6)); // never beyond the box
    number.removeAttribute("aria-invalid");
    changed(Number(number.value));
  });
  return {
    element: element("div", { class: "entry-field" }, element("label", { for: id }, name), number, range),
    good,
  };
}

function listing(wanted, rows, changed) {
  const id = newId("rows");
  let now = rows;
  let wrong = null;
  const text = element("textarea", { id, rows: 8, spellcheck: "false", "aria-describedby": `${id}-note` });
  text.value = rows.map((row) => row.join(" ")).join("\n");
  text.addEventListener("input", () => {
    ({ rows: now, wrong } = parsed(text.value, wanted, now));
    text.setAttribute("aria-invalid", String(wrong !== null));
    changed();
  });
  const note =
    `One ${wanted.word} a line: ${wanted.names.join(", ")}.` +
    (wanted.count === null ? " Any number of lines." : ` ${wanted.count} lines.`);
  const box = element(
    "div",
    { class: "field" },
    element("label", { for: id }, `Input: the ${wanted.word}s`),
    text,
    element("small", { class: "note", id: `${id}-note` }, note),
  );
  return { element: box, entries: [], rows: () => now, tokens: () => wanted.toTokens(now), problem: () => wrong };
}

function parsed(text, wanted, before) {
  if (text.length > MAX_TEXT) return { rows: before, wrong: "This is too long for the page." };
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const rows = lines.map((line) =>
    line
      .split(/[\s,;]+/)
      .filter(Boolean)
      .map(Number),
  );
  const bad = rows.findIndex((row) => row.length !== wanted.names.length || !row.every(Number.isFinite));
  if (bad >= 0)
    return {
      rows: before,
      wrong: `Line ${bad + 1} must hold ${wanted.names.length} numbers: ${wanted.names.join(", ")}.`,
    };
  if (!rows.length) return { rows: before, wrong: `Give at least one ${wanted.word}.` };
  if (wanted.count !== null && rows.length !== wanted.count)
    return { rows: before, wrong: `There must be ${wanted.count} lines, not ${rows.length}.` };
  return { rows, wrong: null };
}
