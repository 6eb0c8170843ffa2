/* Heat maps: a chart whose body is a picture, one pixel a cell, with a bar that says what the colours mean. */

import { Chart } from "./chart.js";
import { element } from "./dom.js";
import { shown } from "./numbers.js";

export class HeatMap {
  /** colours: "share" from the paper's colour to the accent (0 to most), or "signed" with 0 in the middle. */
  constructor({ label, x, y, height = 220, colours = "share", meaning = "", margins = {} }) {
    this.chart = new Chart({ label, x, y, height, margins });
    this.colours = colours;
    this.low = element("span");
    this.high = element("span");
    this.bar = element("div", { class: `colour-bar ${colours}`, "aria-hidden": "true" }, this.low, element("i"), this.high, element("em", {}, meaning));
    this.element = element("div", { class: "heatmap" }, this.chart.element, this.bar);
    this.canvas = document.createElement("canvas");
    this.ends = null; // colours, known until the theme changes
    const repaint = () => {
      this.ends = null;
      if (!this.element.isConnected) document.removeEventListener("themechange", repaint);
      else if (this.last) this.draw(...this.last);
    };
    document.addEventListener("themechange", repaint);
  }

  /** values: rows from the bottom up, each of `columns` entries, in one array; they fill x and y (two ends each). */
  draw(values, rows, columns, { x, y, most = 1 }) {
    this.last = [values, rows, columns, { x, y, most }];
    const scale = this.scale();
    this.canvas.width = columns;
    this.canvas.height = rows;
    const context = this.canvas.getContext("2d");
    const picture = context.createImageData(columns, rows);
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const value = values[(rows - 1 - row) * columns + column] / most;
        picture.data.set(scale(value), 4 * (row * columns + column));
      }
    }
    context.putImageData(picture, 0, 0);
    this.chart.range(x, y);
    this.chart.image("cells", this.canvas.toDataURL(), x, y);
    this.chart.render();
    this.low.textContent = this.colours === "signed" ? shown(-most) : "0";
    this.high.textContent = shown(most);
  }

  /** A share (or a signed one) as [red, green, blue, opacity]. */
  scale() {
    this.ends ??= ["--panel", "--accent", "--orange"].map((name) => colour(this.element, `var(${name})`));
    const [paper, accent, other] = this.ends;
    return (share) => {
      if (!Number.isFinite(share)) return [128, 128, 128, 80];
      const end = share < 0 ? other : accent;
      const much = Math.min(1, Math.abs(share));
      return [0, 1, 2].map((k) => paper[k] + much * (end[k] - paper[k])).concat(255);
    };
  }
}

/** The red, green and blue of a colour as the style sheet means it here. */
function colour(at, text) {
  const probe = element("span", { style: `color: ${text}; display: none` });
  (at.isConnected ? at : document.body).append(probe);
  const found = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  probe.remove();
  return found;
}
