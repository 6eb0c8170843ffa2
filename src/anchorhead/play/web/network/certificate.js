/* A certificate in words: the same rows as in Python, each [label, text]. */

import { shown } from "../numbers.js";
import { TERMS } from "../tables.js";

export function certificateRows(certificate) {
  const { kind, bound, dtype, terms, reference, conditions, worst } = certificate;
  const box = boxText(certificate.low.flat(), certificate.high.flat());
  return [
    [kind, `${errorInWords(kind, bound)} (sup norm) on ${box}, in ${dtype}`],
    ["target", certificate.target],
    ...conditions.map((one) => ["provided", conditionText(one)]),
    ...terms.map((one) => [shownAbove(one.amount), termText(one)]),
    ...reference.map((one) => [shown(one.amount), `to compare: ${termText(one)}`]),
    ...(Number.isFinite(worst?.error) ? [[shown(worst.error), `largest error found, at ${numbers(worst.at)}`]] : []),
    ["method", certificate.method],
    ["arithmetic", certificate.arithmetic],
  ];
}

/** What is said of the error: a bound only where one is proven. */
export function errorInWords(kind, bound) {
  return `${kind === "proven" ? "error at most" : "no bound, largest error found"} ${shownAbove(bound)}`;
}

/** Three digits, rounded up: what is written is never less than what was proven. */
export function shownAbove(value) {
  const near = Number(value.toPrecision(3));
  if (near >= value || !Number.isFinite(value)) return shown(near);
  const digit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 2);
  return shown(near + digit);
}

function boxText(lows, highs) {
  const same = (ends) => ends.every((end) => end === ends[0]);
  if (same(lows) && same(highs)) return `[${shown(lows[0], 6)}, ${shown(highs[0], 6)}]`;
  return `a box within [${shown(Math.min(...lows), 6)}, ${shown(Math.max(...highs), 6)}]`;
}

/** Terms as a file holds them; files of before hold words and numbers. */
export function termsOf(stored) {
  if (Array.isArray(stored)) return stored;
  return Object.entries(stored).map(([label, amount]) => ({ kind: "other", of: "", amount, label }));
}

function termText({ kind, of, variables = [], anchors = [], label = "" }) {
  if (!Object.hasOwn(TERMS, kind) || !Object.hasOwn(TERMS[kind], of))
    return `a term that this page does not know: ${String(kind)}, ${String(of)}`;
  try {
    const given = { variables: variables.join(", "), label };
    const words = TERMS[kind][of].replace(/\{(variables|label)\}/, (_, name) => given[name]);
    return anchors.length ? `${words} (${anchors.map(anchorsText).join("; ")})` : words;
  } catch {
    return "a term that is damaged";
  }
}

function anchorsText({ sides, betas, heads }) {
  const some = heads === null ? "" : `H = ${heads}, `;
  return `p = ${sides.join(" x ")}, ${some}beta = ${betas.map((beta) => shown(beta, 4)).join(", ")}`;
}

function conditionText(one) {
  const texts = {
    excluded: () => `w·x + t is in none of ${one.intervals.length} open intervals, where the output changes`,
    "image of a norm": () => `x is what the ${one.norm} in front puts out`,
    "at most so many examples": () => `prompts of at most ${one.most} examples`,
    "safe rate": () =>
      `the rate is safe: ${one.rate} times the largest second derivative is at most ${shown(one.limit, 6)}`,
    "safe curvature": () =>
      `the rate is safe for the prompt: with the curvature it comes to at most ${shown(one.limit, 6)}`,
    "keeps within": () => `exact descent keeps ${one.quantity} between ${one.low} and ${one.high}`,
    "assumed Lipschitz constant": () => `the function changes by at most ${numbers(one.constants)} times the distance`,
  };
  try {
    return Object.hasOwn(texts, one?.kind)
      ? texts[one.kind]()
      : `a condition that this page does not know: ${String(one?.kind)}`;
  } catch {
    return "a condition that is damaged";
  }
}

function numbers(list) {
  return Array.isArray(list) ? `(${list.map((one) => shown(one, 6)).join(", ")})` : shown(list, 6);
}
