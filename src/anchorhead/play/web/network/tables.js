/* What a network did, in tables and sentences. */

import { tokenName } from "./map.js";
import { shownAbove } from "./certificate.js";
import { element } from "../dom.js";
import { shown } from "../numbers.js";

const MAX_ROWS = 40;
const MAX_COLUMNS = 12;
const MAX_NAMED = 4;

/** The output, with what is known of its error, and a word where the input lies outside of the box. */
export function outputTable(opened, output, tokens) {
  const { network, certificate, dtype } = opened;
  const features = network.streams.at(-1).features;
  const rows = output.slice(0, MAX_ROWS).map((token, i) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, tokenName({ kind: network.output, index: i })),
      token.slice(0, MAX_COLUMNS).map((value) => element("td", {}, shown(value, 7))),
    ),
  );
  const head = element(
    "tr",
    {},
    element("th", { scope: "col" }, "token"),
    features.slice(0, MAX_COLUMNS).map((name) => element("th", { scope: "col" }, name)),
  );
  const notes = [];
  if (output.length > MAX_ROWS || features.length > MAX_COLUMNS) notes.push("Only a part of the output is listed.");
  if (certificate !== null)
    notes.push(
      outside(certificate, tokens)
        ? "This input lies outside of the box that the certificate covers: the bound does not hold here."
        : `Each number is ${certificate.kind} to be within ${shownAbove(certificate.bound)} of what it approximates.`,
    );
  if (dtype === "float32")
    notes.push("The weights are float32; the page computes with them in float64, so float32's rounding is not seen.");
  return element(
    "div",
    {},
    table(head, rows),
    notes.map((text) => element("p", { class: "note" }, text)),
  );
}

function outside({ low, high }, tokens) {
  const at = (rows, i, j) => rows[Math.min(i, rows.length - 1)][j];
  return tokens.some((token, i) => token.some((value, j) => value < at(low, i, j) || value > at(high, i, j)));
}

/** For one token, what each head adds to each feature that any head writes. */
export function addedTable(note, token) {
  const width = note.features.length;
  const added = (head, feature) => note.added[(head * note.asking.length + token) * width + feature];
  const heads = Array.from({ length: Math.min(note.heads, MAX_ROWS) }, (_, k) => k);
  const written = note.features
    .map((_, feature) => feature)
    .filter((feature) => heads.some((head) => added(head, feature) !== 0));
  const columns = written.slice(0, MAX_COLUMNS);
  if (!columns.length) return element("p", {}, "The heads add 0 here.");
  const most = Math.max(...heads.flatMap((head) => columns.map((feature) => Math.abs(added(head, feature)))));
  const cell = (value) =>
    element(
      "td",
      { class: value < 0 ? "less" : "more", style: `--share: ${Math.round((100 * Math.abs(value)) / most)}%` },
      shown(value, 5),
    );
  const rows = heads.map((head) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, `${note.heads > 1 ? `${head}: ` : ""}${note.labels[head]}`),
      columns.map((feature) => cell(added(head, feature))),
    ),
  );
  const sums = columns.map((feature) => heads.reduce((sum, head) => sum + added(head, feature), 0));
  if (note.heads > 1 && heads.length === note.heads)
    rows.push(
      element(
        "tr",
        { class: "sum" },
        element("th", { scope: "row" }, "together"),
        sums.map((value) => element("td", {}, shown(value, 5))),
      ),
    );
  const head = element(
    "tr",
    {},
    element("th", { scope: "col" }, `at ${tokenName(note.asking[token])}, head`),
    columns.map((feature) => element("th", { scope: "col" }, note.features[feature])),
  );
  const hidden = note.heads - heads.length + (written.length - columns.length);
  return element(
    "div",
    {},
    table(head, rows, "added"),
    hidden > 0 ? element("p", { class: "note" }, "Only a part is listed.") : null,
  );
}

/** Who is looked at most: a sentence for every head, or for the chosen one. */
export function largestWeights(note, chosen, row, byHead) {
  const heads = byHead ? Array.from({ length: Math.min(note.heads, MAX_ROWS) }, (_, k) => k) : [chosen.head];
  const lines = heads.map((head) => {
    const weights = Array.from(row(head, chosen.token), (weight, k) => ({ weight, token: note.seen[k] }));
    const visible = weights.filter(({ weight }) => weight > 0);
    const most = Math.max(...visible.map(({ weight }) => weight));
    if (visible.length > MAX_NAMED && most * visible.length < 1.02)
      return line(note, head, `${visible.length} tokens about alike`);
    const named = weights
      .sort((a, b) => b.weight - a.weight)
      .slice(0, MAX_NAMED)
      .filter(({ weight }) => weight >= 0.005);
    const text = named
      .map(({ weight, token }) => `${tokenName(token)} (${(100 * weight).toFixed(weight > 0.9995 ? 0 : 1)} %)`)
      .join(", ");
    return line(note, head, text || `${visible.length} tokens, at none with more than 0.5 %`);
  });
  return element(
    "div",
    { class: "looks" },
    element("p", {}, `${tokenName(note.asking[chosen.token])}:`),
    element("ul", {}, lines),
  );
}

function line(note, head, text) {
  const label = note.labels[head] === `head ${head}` ? "" : ` (${note.labels[head]})`;
  return element("li", {}, element("b", {}, `head ${head}`), `${label} looks at ${text}`);
}

function table(head, rows, kind = "") {
  return element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" },
    element("table", { class: kind }, element("thead", {}, head), element("tbody", {}, rows)),
  );
}
