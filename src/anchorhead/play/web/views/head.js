/* One head: a function, its anchors as handles, and what softmax makes of them. */

import { Chart } from "../chart.js";
import { panel } from "../controls.js";
import { spread } from "../numbers.js";

function mount(root, state, changed) {
  const chart = new Chart({ label: "Function and head", x: { label: "s" }, y: { label: "value" } });
  root.append(panel("One head", "Each anchor is a key with a value; softmax mixes the values.", chart.element));
  const xs = spread(-3, 3, 200);
  chart.range([-3, 3], [-1, 1]);
  chart.line("f", xs, xs.map(Math.sin), { class: "function" });
  chart.legend([{ class: "function", name: "function" }]);
  chart.render();
  return { state: () => ({}), svg: () => chart.svg, python: () => null, unmount: () => {} };
}

export const view = { name: "head", title: "One head", mount };
