/* What leaves a network along one of its inputs, all others as they are. */

import { Chart } from "../chart.js";
import { select } from "../controls.js";
import { element } from "../dom.js";
import { shown, spread } from "../numbers.js";
import { tokenName } from "./map.js";
import { run, workOf } from "./network.js";

const POINTS = 121;
const MAX_WORK = 3e7; // multiplications for the whole curve
const MAX_LINES = 6;

export class Slice {
  /** changed() is called when a person chooses another input; `along` is its number. */
  constructor(changed) {
    this.changed = changed;
    this.along = 0;
    this.chooser = element("div", { class: "narrow" });
    this.chart = new Chart({ label: "Output along one input", x: { label: "" }, y: { label: "output" }, height: 250 });
    this.element = element("div", {}, this.chooser, this.chart.element);
  }

  /** New fields: what can be chosen, and that nothing is drawn where there are none. */
  offer(opened, editor, along) {
    Object.assign(this, { opened, editor });
    const { entries } = editor;
    this.along = Number.isSafeInteger(along) && along in entries ? along : 0;
    this.drawn = entries.length > 0 && POINTS * workOf(opened.network, opened.network.layers[0].tokens) <= MAX_WORK;
    this.element.hidden = !this.drawn;
    const options = entries.map(({ name }, k) => ({ value: String(k), label: name }));
    const put = (value) => {
      this.along = Number(value);
      this.update();
      this.changed();
    };
    const choice =
      entries.length > 1 ? [select({ label: "Along", options, value: String(this.along), changed: put }).element] : [];
    this.chooser.replaceChildren(...choice);
    for (const key of this.chart.keys("output")) this.chart.remove(key);
  }

  update() {
    if (!this.drawn || this.editor.problem() !== null) return;
    const { chart, editor, opened } = this;
    const { i, j, ends, name } = editor.entries[this.along];
    const here = editor.rows()[i][j];
    const low = Math.min(ends[0], here);
    const high = Math.max(ends[1], here);
    const at = (value) =>
      run(
        opened.network,
        editor.tokens(editor.rows().map((row, n) => (n === i ? row.with(j, value) : row))),
      ).output.flat();
    const xs = spread(low, high, POINTS);
    const all = Array.from(xs, at);
    const now = at(here);
    const names = lineNames(opened.network, now.length);
    const values = all.flatMap((outputs) => outputs.slice(0, names.length));
    chart.axes.x.label = name;
    chart.range([low, high], padded(Math.min(...values), Math.max(...values)));
    names.forEach((_, k) =>
      chart.line(
        `output ${k}`,
        xs,
        all.map((outputs) => outputs[k]),
        { class: `c${k}` },
      ),
    );
    chart.points(
      "here",
      names.map(() => here),
      now.slice(0, names.length),
      { radius: 5 },
    );
    chart.legend(names.length > 1 ? names.map((word, k) => ({ class: `c${k}`, name: word })) : []);
    chart.tooltip((x) => {
      const k = Math.round(((x - low) / (high - low)) * (POINTS - 1));
      return k in all ? [[name, shown(xs[k], 4)], ...names.map((word, n) => [word, shown(all[k][n], 5)])] : null;
    });
    chart.describe(`The output along ${name}, from ${shown(low)} to ${shown(high)}; now ${name} is ${shown(here, 5)}.`);
    chart.render();
  }
}

function lineNames(net, count) {
  const features = net.streams.at(-1).features;
  const several = count > features.length;
  const all = Array.from({ length: count }, (_, k) => {
    const feature = features[k % features.length];
    return several
      ? `${feature} of ${tokenName({ kind: net.output, index: Math.floor(k / features.length) })}`
      : feature;
  });
  return all.slice(0, MAX_LINES);
}

function padded(low, high) {
  const room = 0.06 * (high - low) || 0.1 * Math.abs(high) || 1;
  return [low - room, high + room];
}
