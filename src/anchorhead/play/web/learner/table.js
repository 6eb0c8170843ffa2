/* The examples as numbers that can be typed, with what the first head weighs each of them. */

import { button } from "../controls.js";
import { element } from "../dom.js";
import { shown } from "../numbers.js";
import { LOSSES } from "./learner.js";

export class ExampleTable {
  constructor({ move, remove }) {
    this.asked = { move, remove };
    this.body = element("tbody");
    const heads = ["", "x", "y", "misses by", "copy", "negative", ""].map((word) =>
      element("th", { scope: "col" }, word),
    );
    this.element = element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Examples" },
      element("table", { class: "examples" }, element("thead", {}, element("tr", {}, heads)), this.body),
    );
    this.rows = [];
  }

  /** weights: of the first head, {copy, negative} for each example, or null where nothing was learned. */
  draw(examples, loss, line, weights) {
    this.loss = loss;
    while (this.rows.length > examples.length) this.rows.pop().element.remove();
    while (this.rows.length < examples.length) this.rows.push(this.row(this.rows.length));
    this.rows.forEach((row, i) => {
      const [x, y] = examples[i];
      row.values = [x, y];
      row.inputs.forEach((input, k) => {
        if (document.activeElement !== input) input.value = examples[i][k];
      });
      const texts = line
        ? [LOSSES[loss].predict(line[0] * x + line[1]) - y, weights?.[i].copy, weights?.[i].negative]
        : [];
      row.cells.forEach((cell, k) => (cell.textContent = Number.isFinite(texts[k]) ? shown(texts[k], k ? 5 : 3) : ""));
    });
  }

  row(i) {
    const made = { values: [0, 0], cells: [0, 1, 2].map(() => element("td")) };
    made.inputs = ["x", "y"].map((name, k) => {
      const input = element("input", {
        type: "number",
        min: -1,
        max: 1,
        step: 0.01,
        "aria-label": `${name} of example ${i + 1}`,
      });
      input.addEventListener("input", () => {
        const given = Number(input.value);
        const good =
          input.value !== "" &&
          Math.abs(given) <= 1 &&
          (name === "x" || this.loss === "squared" || given === 0 || given === 1);
        input.setAttribute("aria-invalid", String(!good));
        if (good) this.asked.move(i, ...made.values.map((value, j) => (j === k ? given : value)));
      });
      return input;
    });
    const gone = button({ label: "×", title: `Remove example ${i + 1}`, pressed: () => this.asked.remove(i) });
    gone.setAttribute("aria-label", `Remove example ${i + 1}`);
    made.element = element(
      "tr",
      {},
      element("th", { scope: "row" }, String(i + 1)),
      made.inputs.map((input) => element("td", {}, input)),
      made.cells,
      element("td", {}, gone),
    );
    this.body.append(made.element);
    return made;
  }
}
