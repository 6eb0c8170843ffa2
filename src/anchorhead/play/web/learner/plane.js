/* The plane of examples: click to add one, drag it, or move it with the arrow keys; the learner's line among them. */

import { Chart } from "../chart.js";
import { svg } from "../dom.js";
import { shown, spread } from "../numbers.js";
import { LOSSES } from "./learner.js";

const EDGE = 1.06; // what the axes show: a little more than the square
const STEPS = 100; // places are hundredths
const PAST = 12; // earlier lines that are drawn

const RANGES = { squared: [-EDGE, EDGE], logistic: [-0.12, 1.12] };

const hundredths = (value) => Math.round(Math.min(1, Math.max(-1, value)) * STEPS) / STEPS;

export class Plane {
  /** add(x, y), move(i, x, y), remove(i): what the view does when a person asks for it. */
  constructor({ add, move, remove }) {
    this.asked = { add, move, remove };
    this.chart = new Chart({
      label: "Examples and the learner's line",
      x: { label: "x" },
      y: { label: "y" },
      height: 420,
    });
    this.chart.svg.classList.add("plane");
    this.element = this.chart.element;
    this.handles = [];
    this.dragged = false;
    this.loss = "squared";
    this.chart.svg.addEventListener("click", (event) => this.click(event));
    this.chart.onrender = () => this.place();
  }

  /** A place as an example may have it: labels of the logistic loss are 0 and 1. */
  kept(x, y) {
    return [hundredths(x), this.loss === "logistic" ? Number(y > 0.5) : hundredths(y)];
  }

  click(event) {
    const { x, y } = this.chart.at(event);
    const [low, high] = RANGES[this.loss];
    const outside = Math.abs(x) > EDGE || y < low || y > high;
    if (!this.dragged && !outside && !event.target.classList.contains("example")) this.asked.add(...this.kept(x, y));
    this.dragged = false;
  }

  /** examples [[x, y]]; pulls, one each, from -1 to 1; lines: the path so far; best: the line of least squares or null. */
  draw({ examples, pulls, lines, best, loss }) {
    Object.assign(this, { examples, pulls, loss });
    this.chart.range([-EDGE, EDGE], RANGES[loss]);
    this.chart.axes.y.label = loss === "logistic" ? "label, and probability of 1" : "y";
    while (this.handles.length > examples.length) this.handles.pop().remove();
    while (this.handles.length < examples.length) this.handles.push(this.handle(this.handles.length));
    const ends = spread(-EDGE, EDGE, loss === "logistic" ? 81 : 2);
    const along = ([slope, intercept]) => ends.map((x) => LOSSES[loss].predict(slope * x + intercept));
    const past = lines.slice(0, -1).filter((_, k) => k % Math.ceil(lines.length / PAST) === 0);
    for (const key of this.chart.keys("past")) this.chart.remove(key);
    past.forEach((line, k) => this.chart.line(`past ${k}`, ends, along(line), { class: "thin past" }));
    if (best) this.chart.line("best", ends, along(best), { class: "dotted" });
    else this.chart.remove("best");
    if (lines.length) this.chart.line("now", ends, along(lines.at(-1)), { class: "learned" });
    else this.chart.remove("now");
    this.chart.render();
  }

  handle(i) {
    const made = svg("circle", { class: "example", tabindex: 0, role: "button" });
    made.addEventListener("pointerdown", (event) => {
      made.setPointerCapture(event.pointerId);
      made.focus();
      event.preventDefault();
    });
    made.addEventListener("pointermove", (event) => {
      if (!made.hasPointerCapture(event.pointerId)) return;
      this.dragged = true;
      const { x, y } = this.chart.at(event);
      this.asked.move(i, ...this.kept(x, y));
    });
    made.addEventListener("keydown", (event) => this.key(event, i));
    this.chart.layer.append(made);
    return made;
  }

  key(event, i) {
    const by = event.shiftKey ? 0.1 : 0.02;
    const moves = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, by], ArrowDown: [0, -by] };
    const move = moves[event.key];
    const far = this.loss === "logistic" ? 100 : 1; // there any step up or down is to the other label
    if (move) this.asked.move(i, ...this.kept(this.examples[i][0] + move[0], this.examples[i][1] + far * move[1]));
    else if (event.key === "Delete" || event.key === "Backspace") this.asked.remove(i);
    else return;
    event.preventDefault();
  }

  place() {
    this.handles.forEach((made, i) => {
      const [x, y] = this.examples[i];
      const pull = this.pulls[i] ?? 0;
      made.setAttribute("cx", this.chart.toX(x));
      made.setAttribute("cy", this.chart.toY(y));
      made.setAttribute("r", (6 + 10 * Math.abs(pull)) * this.chart.unit);
      made.setAttribute("class", `example ${pull < 0 ? "c1" : "c0"}`);
      made.setAttribute(
        "aria-label",
        `Example ${i + 1} at x ${shown(x)}, y ${shown(y)}. Arrow keys move it, Delete removes it.`,
      );
    });
  }
}
