/* Charts of the learner: what its heads weigh examples with, its loss, and its distance from exact gradient descent. */

import { Chart } from "../chart.js";
import { shown } from "../numbers.js";
import { meanLoss } from "./learner.js";
import { STEPS } from "./settings.js";

export class LearnerPictures {
  constructor() {
    this.losses = new Chart({ label: "Loss after each step", x: { label: "step" }, y: { label: "loss" }, height: 220 });
    this.distances = new Chart({
      label: "Distance from exact gradient descent",
      x: { label: "step" },
      y: { label: "distance", log: true, format: (v) => v.toExponential(0).replace("-", "−") },
      height: 220,
      margins: { left: 70 },
    });
    this.pulls = new Chart({
      label: "Weights of the heads on the examples",
      x: { label: "example" },
      y: { label: "copy − negative" },
      height: 220,
      margins: { left: 84 },
    });
    this.losses.legend([
      { class: "head", name: "the learner" },
      { class: "thin", name: "exact gradient descent" },
    ]);
    this.pulls.legend([
      { class: "c0", shape: "points", name: "head at h" },
      { class: "c3", shape: "points", name: "head at 2h" },
    ]);
  }

  /** weights: of each head, {copy, negative} for each example; null where nothing was learned. */
  drawWeights(weights, examples) {
    const { pulls } = this;
    const count = examples.length;
    const heads = weights ? weights.map((head) => head.map(({ copy, negative }) => copy - negative)) : [[], []];
    const most = 1.1 * Math.max(1e-12, ...heads.flat().map(Math.abs));
    pulls.range([0.4, Math.max(1, count) + 0.6], [-most, most]);
    pulls.axes.x.ticks = examples.map((_, i) => i + 1).filter((i) => (i - 1) % Math.ceil(count / 12) === 0);
    ["c0", "c3"].forEach((kind, h) => {
      const at = heads[h].map((_, i) => i + 1 + (h ? 0.12 : -0.12));
      pulls.line(
        `stems ${h}`,
        at.flatMap((x) => [x, x, x]),
        heads[h].flatMap((value) => [0, value, Number.NaN]),
        { class: kind },
      );
      pulls.points(`heads ${h}`, at, heads[h], { class: kind, radius: 4 });
    });
    pulls.tooltip((x) => {
      const i = Math.round(x) - 1;
      if (!weights || !(i in examples)) return null;
      return [
        [`example ${i + 1}`, ""],
        ...weights.map((head, h) => [
          h ? "at 2h" : "at h",
          `${shown(head[i].copy, 5)} − ${shown(head[i].negative, 5)}`,
        ]),
      ];
    });
    pulls.render();
  }

  /** found: {path, exact} or null. */
  drawCourse(examples, loss, found, step) {
    const { losses, distances } = this;
    const steps = Array.from({ length: STEPS + 1 }, (_, k) => k);
    const learned = found ? found.path.map((w) => meanLoss(examples, loss, w)) : [];
    const exact = found ? found.exact.map((w) => meanLoss(examples, loss, w)) : [];
    const away = found
      ? found.path.map((w, k) => Math.max(...w.map((one, j) => Math.abs(one - found.exact[k][j]))))
      : [];
    losses.range([0, STEPS], [0, 1.05 * Math.max(1e-9, ...learned, ...exact)]);
    losses.line("exact", steps.slice(0, exact.length), exact, { class: "thin" });
    losses.line("learner", steps.slice(0, learned.length), learned, { class: "head" });
    losses.points("now", found ? [step] : [], found ? [learned[step]] : [], { radius: 5 });
    losses.render();
    const low = Math.min(1e-15, ...away.filter((one) => one > 0));
    distances.range([0, STEPS], [low / 2, 4 * Math.max(1e-12, ...away)]);
    distances.line("away", steps.slice(0, away.length), away, { class: "error" });
    distances.points("now", found && away[step] > 0 ? [step] : [], found ? [away[step]] : [], {
      radius: 5,
    });
    distances.describe(
      found
        ? `After all steps the learner is ${shown(away.at(-1))} from exact gradient descent.`
        : "Nothing was learned.",
    );
    for (const chart of [losses, distances])
      chart.tooltip((x) => {
        const k = Math.round(x);
        if (!found || !(k in learned)) return null;
        return [
          ["step", String(k)],
          ["loss", shown(learned[k])],
          ["away", shown(away[k])],
        ];
      });
    distances.render();
  }
}
