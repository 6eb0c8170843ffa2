/* The second story: two attention layers make any continuous function of a sequence. */

import { element } from "../dom.js";
import { Chart } from "../chart.js";
import { HeatMap } from "../heatmap.js";
import { AttentionMap } from "../network/map.js";
import { run } from "../network/network.js";
import { shown } from "../numbers.js";
import { FUNCTIONS, compared, gridHead, meanDistance } from "./two_layers.js";

const POINTS = 101; // along each axis, where errors are looked for
const SIZES = [2, 3, 4, 6, 8, 12, 16, 24, 32];
const SQUARE = { x: [-1, 1], y: [-1, 1] };
const MAX_REGISTERS = 4;

const chosen = (settings) => FUNCTIONS.find((one) => one.name === settings.f) ?? FUNCTIONS[0];
const headOf = (settings, side = settings.side) => gridHead({ f: chosen(settings).f, side, c: settings.c });
const lineOf = (head, { lipschitz }) => (lipschitz[0] + lipschitz[1]) * meanDistance(head);

export const LAYERS_STORY = {
  name: "layers",
  title: "Two layers, any function",
  steps: [
    {
      title: "A function of a sequence",
      text: [
        "Here is a sequence of two tokens that hold one number each, x and y. We want a network that puts out f(x, y) at both of them, for any continuous f on the square.",
        "It may use linear maps and softmax attention, and nothing else. Two attention layers are enough.",
      ],
      controls: ["f", "x", "y"],
      stage: functionStage,
    },
    {
      title: "Layer one gathers",
      text: [
        "A token knows its own number only. So the first layer copies: head j asks with 1, and the key of a token is 2000 where its position is j, 0 elsewhere. Softmax turns that into a weight of exactly 1 on token j.",
        "With one head for each token, every token holds the whole sequence afterwards.",
      ],
      controls: ["x", "y"],
      stage: gatherStage,
    },
    {
      title: "Layer two looks up",
      text: [
        "The second layer has one head over a grid of p × p anchors. The score of an anchor is a sum of two scores, one along each axis, each as in the first story. Then weights are products, and softmax picks the anchors around (x, y).",
      ],
      controls: ["side", "c", "x", "y"],
      stage: gridStage,
    },
    {
      title: "Values of the function",
      text: [
        "Every anchor holds the value of f at its place: that is all the network knows of f. What leaves it is the average of f over the anchors that softmax picked.",
        "If f changes by at most L₁ and L₂ times the distance along the axes, the error is at most that, times the mean distance to those anchors: about half a spacing.",
      ],
      controls: ["f", "side", "c"],
      stage: valueStage,
    },
    {
      title: "Error against p",
      text: [
        "A continuous f changes little over small distances, so a fine enough grid brings the error below any bound: two layers approximate every continuous function. That is universal approximation.",
        "Even anchors are the proof, not the best network: solved anchors and values (ah.approximate) need a few where even ones need thousands.",
      ],
      controls: ["f", "side", "c"],
      stage: sizeStage,
    },
  ],
  python: code,
  measured: (settings) => {
    const head = headOf(settings);
    return { error: compared(head, chosen(settings).f, POINTS).error, theorem: lineOf(head, chosen(settings)) };
  },
};

function functionStage() {
  const map = new HeatMap({
    label: "The function",
    x: { label: "x" },
    y: { label: "y" },
    height: 400,
    colours: "signed",
    meaning: "f(x, y)",
  });
  const update = (settings) => {
    const { f, name } = chosen(settings);
    const { exact } = compared(headOf(settings, 2), f, POINTS);
    map.draw(exact, POINTS, POINTS, { ...SQUARE, most: largest(exact) });
    mark(map, settings);
    map.chart.describe(`The function ${name} on the square.`);
    return `f(${shown(settings.x)}, ${shown(settings.y)}) = ${shown(f(settings.x, settings.y), 5)}.`;
  };
  return { element: map.element, svg: () => map.chart.svg, update };
}

function gatherStage() {
  const map = new AttentionMap({ left: 112 });
  const holds = element("tbody");
  const head = ["after layer one", "x of token 0", "x of token 1"].map((word) => element("th", { scope: "col" }, word));
  const table = element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "What tokens hold" },
    element("table", {}, element("thead", {}, element("tr", {}, head)), holds),
  );
  const update = (settings) => {
    const [note] = run(headOf(settings, 2).network(), [[settings.x], [settings.y]], { record: true }).attention;
    const columns = note.seen.slice(0, 2 + MAX_REGISTERS);
    const rows = [0, 1].flatMap((h) =>
      [0, 1].map((token) => ({ long: `head ${h}, token ${token}`, at: h * 2 + token })),
    );
    const weights = Float64Array.from(
      rows.flatMap(({ at }) => columns.map((_, k) => note.weights[at * note.seen.length + k])),
    );
    const names = columns.map(({ kind, index }) => ({
      long: kind === "input" ? `token ${index}` : `anchor ${index}`,
      short: `${kind === "input" ? "t" : "a"}${index}`,
    }));
    map.draw(weights, rows, names, "heads and tokens", "tokens that are seen");
    const width = note.features.length;
    holds.replaceChildren(
      ...[0, 1].map((token) => {
        const sums = [0, 1].map(
          (feature) => note.added[token * width + feature] + note.added[(2 + token) * width + feature],
        );
        return element(
          "tr",
          {},
          element("th", { scope: "row" }, `token ${token}`),
          sums.map((value) => element("td", {}, shown(value, 5))),
        );
      }),
    );
    return "Both tokens hold both numbers, exactly: all other weights are so small that float64 has 0 for them.";
  };
  return { element: element("div", {}, map.element, table), svg: () => map.svg, update };
}

function gridStage() {
  const map = new HeatMap({
    label: "Attention over the grid",
    x: { label: "x" },
    y: { label: "y" },
    height: 400,
    meaning: "attention weight",
  });
  const update = (settings) => {
    const head = headOf(settings);
    const [along, up] = [head.along(settings.x), head.along(settings.y)];
    const weights = Float64Array.from(up.flatMap((b) => along.map((a) => a * b)));
    const half = head.spacing / 2;
    map.draw(weights, head.side, head.side, {
      x: [-1 - half, 1 + half],
      y: [-1 - half, 1 + half],
      most: largest(weights),
    });
    mark(map, settings);
    const best = [along, up].map((list) => head.places[list.indexOf(Math.max(...list))]);
    map.chart.describe(
      `Attention over ${head.side} by ${head.side} anchors; most of it near (${shown(best[0])}, ${shown(best[1])}).`,
    );
    return `${head.side ** 2} anchors, ${shown(head.spacing)} apart. The nearest to (${shown(settings.x)}, ${shown(settings.y)}) is at (${shown(best[0])}, ${shown(best[1])}), with a weight of ${(100 * largest(weights)).toFixed(0)} %.`;
  };
  return { element: map.element, svg: () => map.chart.svg, update };
}

function valueStage() {
  const options = (label, meaning) => ({
    label,
    x: { label: "x" },
    y: { label: "y" },
    height: 230,
    colours: "signed",
    meaning,
    margins: { left: 48 },
  });
  const maps = [
    new HeatMap(options("The function", "f")),
    new HeatMap(options("The network", "network")),
    new HeatMap(options("The error", "network − f")),
  ];
  const update = (settings) => {
    const { f } = chosen(settings);
    const head = headOf(settings);
    const { exact, found } = compared(head, f, POINTS);
    const error = exact.map((value, k) => found[k] - value);
    [exact, found, error].forEach((values, k) =>
      maps[k].draw(values, POINTS, POINTS, { ...SQUARE, most: largest(k === 1 ? exact : values) }),
    );
    return verdict(settings, head);
  };
  const titled = maps.map((map, k) =>
    element("div", {}, element("h3", {}, ["The function", "The network", "Their difference"][k]), map.element),
  );
  return { element: element("div", { class: "trio" }, titled), svg: () => maps[1].chart.svg, update };
}

function sizeStage() {
  const chart = new Chart({
    label: "Error against the number of anchors",
    x: { label: "anchors along an axis, p", log: true, ticks: [2, 4, 8, 16, 32] },
    y: { label: "largest error", log: true },
    height: 380,
    margins: { left: 70 },
  });
  const update = (settings) => {
    const { f } = chosen(settings);
    const heads = SIZES.map((side) => headOf(settings, side));
    const found = heads.map((head) => compared(head, f, POINTS).error);
    const line = heads.map((head) => lineOf(head, chosen(settings)));
    const here = LAYERS_STORY.measured(settings);
    chart.range([1.8, 36], [Math.min(...found) * 0.6, Math.max(...line) * 1.6]);
    chart.line("line", SIZES, line, { class: "bound dashed" });
    chart.line("found", SIZES, found, { class: "error" });
    chart.points("sizes", SIZES, found, { class: "c1", radius: 3 });
    chart.points("here", [settings.side], [here.error], { radius: 6 });
    chart.legend([
      { class: "bound dashed", name: "(L₁ + L₂) × mean distance" },
      { class: "error", name: "largest error found" },
      { class: "", shape: "points", name: "this one" },
    ]);
    chart.describe(
      `At ${settings.side} anchors along an axis the proof's line is ${shown(here.theorem)}, the largest error found ${shown(here.error)}.`,
    );
    chart.render();
    return verdict(settings, headOf(settings));
  };
  return { element: chart.element, svg: () => chart.svg, update };
}

function verdict(settings, head) {
  const { lipschitz, f } = chosen(settings);
  const line = lineOf(head, chosen(settings));
  return `Largest error found: ${shown(compared(head, f, POINTS).error)}, with ${head.side} × ${head.side} anchors. The proof's line: (${lipschitz.join(" + ")}) × ${shown(meanDistance(head))} = ${shown(line)}.`;
}

function mark(map, { x, y }) {
  map.chart.points("here", [x], [y], { class: "c2", radius: 6 });
  map.chart.render();
}

function largest(values) {
  return values.reduce((most, one) => Math.max(most, Math.abs(one)), 0) || 1;
}

function code(settings) {
  const { python } = chosen(settings);
  return [
    "import numpy as np",
    "",
    "from anchorhead.constructions.grids.grid_network import grid_network",
    "from anchorhead.heads.grids.grid import uniform_grid",
    "",
    "",
    "def f(x):  # (points, 2) to (points, 2): what each of the two tokens puts out",
    `    value = ${python}`,
    "    return np.stack([value, value], axis=1)",
    "",
    "",
    `grid = uniform_grid(f, (-1, -1), (1, 1), (${settings.side}, ${settings.side}), ${settings.c})  # even anchors, values of f`,
    "net = grid_network(grid, tokens=2)  # gathers, then looks up",
    `print(net(np.array([[${settings.x}], [${settings.y}]])))`,
    `side = np.linspace(-1, 1, ${POINTS})`,
    "x = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2, 1)",
    "error = np.abs(net(x)[..., 0] - f(x[..., 0])).max()",
    "print(error)",
    "",
  ].join("\n");
}
