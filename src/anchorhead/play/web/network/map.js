/* Where attention goes: a heat map with tokens along both sides, or heads and tokens. */

import { HeatMap } from "../heatmap.js";
import { shown } from "../numbers.js";

const ROW = 26; // pixels
const MAX_HEIGHT = 420;
const LONG = 72; // pixels that a name takes, in full
const SHORT = 30; // and in short

/** "register 3" of {kind, index}; short: "r3". */
export function tokenName({ kind, index }, short = false) {
  return short ? `${kind[0]}${index}` : `${kind} ${index}`;
}

export class AttentionMap {
  /** left: pixels for the names of rows. */
  constructor({ left = 84 } = {}) {
    this.map = new HeatMap({
      label: "Attention weights",
      x: { label: "" },
      y: { label: "" },
      meaning: "attention weight",
      margins: { left },
    });
    this.element = this.map.element;
    this.svg = this.map.chart.svg;
  }

  /** weights, row by row from the top; rows and columns are names {long, short}. */
  draw(weights, rows, columns, rowWord, columnWord) {
    const chart = this.map.chart;
    const flipped = new Float64Array(weights.length);
    rows.forEach((_, row) => {
      const from = weights.subarray(row * columns.length, (row + 1) * columns.length);
      flipped.set(from, (rows.length - 1 - row) * columns.length);
    });
    const { margins } = chart.given;
    chart.given.height = Math.min(MAX_HEIGHT, Math.max(2, rows.length) * ROW) + margins.top + margins.bottom;
    chart.fit();
    const room = (chart.inner.right - chart.inner.left) / chart.unit;
    const brief = columns.length * LONG > room;
    label(chart.axes.x, columns, brief, Math.floor(room / (brief ? SHORT : LONG)), (k) => k + 0.5);
    label(chart.axes.y, rows, false, 16, (k) => rows.length - k - 0.5);
    chart.axes.x.label = columnWord;
    chart.describe(
      `Attention weights: ${rows.length} rows, ${rowWord}; ${columns.length} columns, ${columnWord}. The text below lists the largest.`,
    );
    chart.tooltip((x, y) => {
      const [column, row] = [Math.floor(x), rows.length - 1 - Math.floor(y)];
      if (!(column in columns) || !(row in rows)) return null;
      return [
        [rows[row].long, ""],
        [columns[column].long, ""],
        ["weight", shown(weights[row * columns.length + column])],
      ];
    });
    this.map.draw(flipped, rows.length, columns.length, {
      x: [0, columns.length],
      y: [0, rows.length],
      most: weights.reduce((most, one) => Math.max(most, one), 0) || 1,
    });
  }
}

/** Names at the middles of cells, at most so many. */
function label(axis, names, brief, most, place) {
  const step = Math.ceil(names.length / most);
  const chosen = names.map((_, k) => k).filter((k) => k % step === 0);
  const words = new Map(chosen.map((k) => [place(k), brief ? names[k].short : names[k].long]));
  axis.ticks = [...words.keys()];
  axis.format = (value) => words.get(value) ?? "";
}
