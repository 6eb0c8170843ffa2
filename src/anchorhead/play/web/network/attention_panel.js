/* Where attention goes and what each head adds: what is looked at is chosen above the picture. */

import { choice, select, slider } from "../controls.js";
import { element } from "../dom.js";
import { AttentionMap, tokenName } from "./map.js";
import { addedTable, largestWeights } from "./tables.js";

export class AttentionPanel {
  /** chosen: {place, step, head, token, rows}; changed() is called when a person chooses something else. */
  constructor(changed) {
    this.map = new AttentionMap();
    this.slots = { chosen: element("div"), looks: element("div"), added: element("div") };
    this.changed = changed;
    this.choose(null);
  }

  /** Looks at what a link says, or at what comes first. */
  choose(given) {
    this.chosen = selectionOf(given);
    this.offered = null;
  }

  /** What run gave, or null. */
  show(result) {
    this.result = result;
    const { slots, map } = this;
    const notes = (result?.attention ?? []).filter((note) => note.asking.length);
    const missing =
      result !== null && result.attention === null
        ? "There are more attention weights than the page can show: give fewer tokens."
        : "No attention layer has anything to show.";
    map.element.hidden = !notes.length;
    if (!notes.length) {
      slots.chosen.replaceChildren(element("p", {}, missing));
      this.offered = null;
      slots.looks.replaceChildren();
      slots.added.replaceChildren(element("p", {}, missing));
      return;
    }
    const places = [...new Set(notes.map((note) => note.place))];
    if (!places.includes(this.chosen.place)) this.chosen = { ...this.chosen, place: places.at(-1) };
    const { chosen } = this;
    const same = notes.filter((note) => note.place === chosen.place);
    chosen.step = within(chosen.step, same.length);
    const note = same[chosen.step];
    chosen.head = within(chosen.head, note.heads);
    chosen.token = within(chosen.token, note.asking.length);
    this.offer(places, same, note);
    this.draw(note);
  }

  /** New controls only where there is something else to choose from: one that is being dragged must stay. */
  offer(places, same, note) {
    const { chosen, slots } = this;
    const choices = [
      places,
      chosen.place,
      same.length,
      note.heads,
      note.labels,
      note.asking,
      rowsAreHeads(note, chosen),
    ];
    const text = JSON.stringify(choices);
    if (text === this.offered && slots.chosen.childElementCount) return;
    this.offered = text;
    const focused = slots.chosen.contains(document.activeElement) ? document.activeElement : null;
    slots.chosen.replaceChildren(this.chooser(places, same, note));
    const again = focused?.type === "radio" ? "input:checked" : `[data-control="${focused?.dataset.control}"]`;
    if (focused) slots.chosen.querySelector(again)?.focus();
  }

  chooser(places, same, note) {
    const { chosen } = this;
    const put = (change) => {
      this.chosen = { ...this.chosen, ...change };
      this.show(this.result);
      this.changed();
    };
    const parts = [];
    const add = (name, made) => {
      made.input.dataset.control = name;
      parts.push(made.element);
    };
    if (places.length > 1)
      add(
        "layer",
        select({
          label: "Layer",
          options: places.map((one) => ({ value: one, label: `layer ${one}` })),
          value: chosen.place,
          changed: (place) => put({ place, step: 0, head: 0, token: 0 }),
        }),
      );
    if (note.heads > 1 && note.asking.length > 1)
      parts.push(
        choice({
          label: "Rows",
          options: [
            { value: "tokens", label: "tokens" },
            { value: "heads", label: "heads" },
          ],
          value: chosen.rows,
          changed: (rows) => put({ rows }),
        }).element,
      );
    if (note.heads > 1 && !rowsAreHeads(note, chosen))
      add(
        "head",
        select({
          label: "Head",
          options: numbered(note.heads, (k) => `${k}: ${note.labels[k]}`),
          value: String(chosen.head),
          changed: (head) => put({ head: Number(head) }),
        }),
      );
    if (note.asking.length > 1)
      add(
        "token",
        select({
          label: "Token that asks",
          options: numbered(note.asking.length, (k) => tokenName(note.asking[k])),
          value: String(chosen.token),
          changed: (token) => put({ token: Number(token) }),
        }),
      );
    const controls = element("div", { class: "row-of" }, parts);
    if (same.length === 1) return controls;
    const steps = slider({
      label: `Step of the repeat, of ${same.length}`,
      min: 1,
      max: same.length,
      value: chosen.step + 1,
      changed: (step) => put({ step: step - 1 }),
    });
    steps.input.dataset.control = "step";
    return element("div", {}, controls, steps.element);
  }

  draw(note) {
    const { chosen, slots } = this;
    const width = note.seen.length;
    const row = (head, token) =>
      note.weights.subarray(
        (head * note.asking.length + token) * width,
        (head * note.asking.length + token + 1) * width,
      );
    slots.looks.replaceChildren(largestWeights(note, chosen, row, rowsAreHeads(note, chosen)));
    slots.added.replaceChildren(addedTable(note, chosen.token));
    const byHead = rowsAreHeads(note, chosen);
    if (note.grid?.length === 2 && !byHead) return this.drawGrid(note, row(chosen.head, chosen.token));
    const columns = note.seen.map((token) => ({ long: tokenName(token), short: tokenName(token, true) }));
    const rows = byHead
      ? numbered(note.heads, (k) => `head ${k}`).map(({ label }) => ({ long: label }))
      : note.asking.map((token) => ({ long: tokenName(token) }));
    const weights = new Float64Array(rows.length * width);
    rows.forEach((_, k) => weights.set(byHead ? row(k, chosen.token) : row(chosen.head, k), k * width));
    this.map.draw(weights, rows, columns, byHead ? "heads" : "tokens that ask", "tokens that are seen");
    return undefined;
  }

  /** Over a grid of two axes the weights of one token make a picture of the grid. */
  drawGrid(note, weights) {
    const [rows, columns] = note.grid;
    const names = (count) => numbered(count, String).map(({ label }) => ({ long: label, short: label }));
    this.map.draw(
      weights.subarray(0, rows * columns),
      names(rows),
      names(columns),
      "anchors along the first axis",
      "anchors along the second axis",
    );
  }
}

/** What a link says of what is looked at, where that makes sense. */
function selectionOf(given) {
  const count = (n) => (Number.isSafeInteger(n) && n >= 0 ? n : 0);
  const one = given ?? {};
  return {
    place: typeof one.place === "string" ? one.place : null,
    step: count(one.step),
    head: count(one.head),
    token: count(one.token),
    rows: one.rows === "heads" ? "heads" : "tokens",
  };
}

/** Heads make the rows where a person said so, and where one token alone asks and there is no grid to draw. */
function rowsAreHeads(note, chosen) {
  return chosen.rows === "heads" || (note.asking.length === 1 && note.grid?.length !== 2);
}

function within(place, count) {
  return Math.min(Math.max(0, place), count - 1);
}

function numbered(count, words) {
  return Array.from({ length: count }, (_, k) => ({ value: String(k), label: words(k) }));
}
