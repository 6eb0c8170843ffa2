/* The first story: one head cuts a line off, with an error of (b - a)/p; H heads over n positions, (b - a)/((n - 2) H). */

import { Chart } from "../chart.js";
import { element } from "../dom.js";
import { shown, spread } from "../numbers.js";
import { cutOff, largestError, pointsToTry, severalHeads, singleHead } from "./ramp.js";

const [LOW, HIGH] = [-1, 1];
const VIEW = [-1.5, 1.5]; // what is drawn of s
const SIZES = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128];
const COUNTS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
const MOST_ROWS = 8;
const colour = (k) => `c${k % 7}`;

const single = ({ anchors, c }) => singleHead({ low: LOW, high: HIGH, anchors, c });
const several = ({ tokens, heads, c }, count = heads) => severalHeads({ low: LOW, high: HIGH, tokens, heads: count, c });

export const HEADS_STORY = {
  name: "heads",
  title: "Heads cut lines off",
  steps: [
    {
      title: "Anchors",
      text: [
        "A token holds a number s = w·x + t. We want s itself, but cut off at −1 and at 1: a ramp, the bend from which networks are made.",
        "Put p anchors evenly from −1 to 1. Each anchor is a key with a value. Counted in spacings, anchor k has the key (2c·k, −c·k²) and the value k; the token asks with (q, 1), where q is s in the same units.",
        "Key times query is a straight line in s for every anchor. Together the lines are tangents of a parabola: above each anchor, its own line is the highest.",
      ],
      controls: ["anchors", "c", "s"],
      stage: scoreStage,
    },
    {
      title: "Softmax selects",
      text: [
        "Complete the square: 2c·q·k − c·k² = −c·(q − k)² + c·q². The last term is the same for all anchors, and softmax does not see it.",
        "So the weight of an anchor falls with its distance from s: softmax looks up the nearest anchor. c says how sharply; half-way between two anchors they share.",
      ],
      controls: ["anchors", "c", "s"],
      stage: weightStage,
    },
    {
      title: "One head",
      text: [
        "The values are the anchors' own places, so the head puts out the place of the nearest anchors, averaged: s where s is between −1 and 1, and the last anchor beyond. The line is cut off by itself.",
        "The theorem says: with p anchors the error is at most (b − a)/p, apart from a softmax term that sharpness makes small.",
      ],
      controls: ["anchors", "c"],
      stage: headStage,
    },
    {
      title: "Error against p",
      text: [
        "Twice the anchors, half the error: O(1/p). If every token of a sequence of n brings an anchor, it is O(1/n).",
        "Try c: near 2.75 the averaging itself follows the line, and the error is 0.063 spacings, where the theorem allows one. Very sharp heads only pick the nearest anchor: half a spacing.",
      ],
      controls: ["anchors", "c"],
      stage: sizeStage,
    },
    {
      title: "Several heads",
      text: [
        "Nothing needs to be appended: let the n positions of the tokens be the anchors, and H heads share the range. Each head owns n − 2 anchors; its first and last position are dummies with value 0, so it is silent outside of its part. The heads add up.",
        "The error is at most (b − a)/((n − 2)H), again apart from a softmax term: where one head hands over to the next both leak a little, so many heads want a larger c.",
      ],
      controls: ["tokens", "heads", "c"],
      stage: severalStage,
    },
  ],
  python: (settings, step) => (step === 4 ? severalCode(settings) : singleCode(settings)),
  measured: (settings, step) => {
    const made = step === 4 ? several(settings) : single(settings);
    return { ...largestError(made, pointsToTry(made)), theorem: made.theorem };
  },
};

function scoreStage() {
  const chart = new Chart({ label: "Scores of the anchors", x: { label: "s" }, y: { label: "key · query" }, height: 340 });
  const body = element("tbody");
  const head = ["anchor", "place", "key", "value", "score at s"].map((word) => element("th", { scope: "col" }, word));
  const table = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Anchors" }, element("table", {}, element("thead", {}, element("tr", {}, head)), body));
  const update = (settings) => {
    const made = single(settings);
    const lines = made.k.map((_, j) => VIEW.map((s) => made.logits(s)[j]));
    const top = settings.c * made.query(VIEW[1]) ** 2;
    chart.range(VIEW, [-0.35 * top, top]);
    for (const key of chart.keys("anchor")) chart.remove(key);
    const xs = spread(...VIEW, 160);
    chart.line("parabola", xs, xs.map((s) => settings.c * made.query(s) ** 2), { class: "dotted" });
    lines.forEach((ys, j) => chart.line(`anchor ${j}`, VIEW, ys, { class: `thin ${colour(j)}` }));
    chart.points("anchor places", made.anchors[0], made.k.map((k) => settings.c * k * k), { radius: 4 });
    chart.line("s", [settings.s, settings.s], [-top, top], { class: "thin" });
    const scores = made.logits(settings.s);
    const best = scores.indexOf(Math.max(...scores));
    chart.points("best", [settings.s], [scores[best]], { class: colour(best), radius: 6 });
    chart.describe(`Straight lines, one for each of ${settings.anchors} anchors; at s = ${shown(settings.s)} that of anchor ${best + 1} is highest.`);
    chart.legend([{ class: "thin c0", name: "score of an anchor" }, { class: "dotted", name: "c·q², their envelope" }, { class: "", shape: "points", name: "anchors" }]);
    chart.render();
    body.replaceChildren(...rowsOf(made, scores, best));
    return `At s = ${shown(settings.s)} anchor ${best + 1}, at ${shown(made.anchors[0][best])}, has the highest score.`;
  };
  return { element: element("div", {}, chart.element, table), svg: () => chart.svg, update };
}

function rowsOf(made, scores, best) {
  const count = made.k.length;
  const chosen = made.k.map((_, j) => j).filter((j) => count <= MOST_ROWS || Math.abs(j - best) < MOST_ROWS / 2);
  return chosen.map((j) =>
    element(
      "tr", { class: j === best ? "sum" : "" }, element("th", { scope: "row" }, String(j + 1)),
      [shown(made.anchors[0][j]), `(${shown(2 * made.c * made.k[j])}, ${shown(-made.c * made.k[j] ** 2)})`, shown(made.k[j]), shown(scores[j])].map((text) => element("td", {}, text)),
    ),
  );
}

function weightStage() {
  const chart = new Chart({ label: "Attention along s", x: { label: "s" }, y: { label: "attention weight" }, height: 340 });
  const update = (settings) => {
    const made = single(settings);
    const xs = spread(...VIEW, 480);
    const all = Array.from(xs, (s) => made.weights(s));
    const here = made.weights(settings.s);
    chart.range(VIEW, [0, 1.02]);
    for (const key of chart.keys("anchor")) chart.remove(key);
    made.k.forEach((_, j) => chart.line(`anchor ${j}`, xs, all.map((weights) => weights[j]), { class: colour(j) }));
    chart.line("s", [settings.s, settings.s], [0, 1.02], { class: "thin" });
    chart.points("here", here.map(() => settings.s), here, { radius: 4.5 });
    chart.points("anchors", made.anchors[0], made.k.map(() => 0), { radius: 5 });
    chart.legend([{ class: "c0", name: "weight of an anchor" }, { class: "", shape: "points", name: "anchors on the axis, weights at s" }]);
    chart.render();
    const best = here.map((weight, j) => ({ weight, j })).sort((a, b) => b.weight - a.weight).slice(0, 3);
    const text = best.map(({ weight, j }) => `${(100 * weight).toFixed(1)} % on the anchor at ${shown(made.anchors[0][j])}`).join(", ");
    chart.describe(`Attention weights of ${settings.anchors} anchors. At s = ${shown(settings.s)}: ${text}.`);
    return `At s = ${shown(settings.s)}: ${text}.`;
  };
  return { element: chart.element, svg: () => chart.svg, update };
}

function headStage() {
  const chart = new Chart({ label: "Head and truncated line", x: { label: "s" }, y: { label: "value" }, height: 300 });
  const errors = new Chart({ label: "Error", x: { label: "s" }, y: { label: "head − line" }, height: 220, margins: { left: 70 } });
  const update = (settings) => {
    const made = single(settings);
    drawRamp(chart, made);
    drawErrors(errors, made);
    return verdict(made, `(b − a)/p = 2/${settings.anchors}`);
  };
  return { element: element("div", {}, chart.element, errors.element), svg: () => chart.svg, update };
}

function drawRamp(chart, made) {
  const xs = spread(...VIEW, 700);
  chart.range(VIEW, [-1.25, 1.25]);
  chart.line("line", xs, xs.map((s) => cutOff(s, LOW, HIGH)), { class: "function" });
  chart.line("head", xs, xs.map(made.value), { class: "head" });
  chart.legend([{ class: "function", name: "s, cut off at −1 and 1" }, { class: "head", name: made.heads.length > 1 ? "heads together" : "head" }]);
}

function drawErrors(chart, made) {
  const xs = pointsToTry(made);
  chart.range(VIEW, [-1.15 * made.theorem, 1.15 * made.theorem]);
  chart.band("theorem", VIEW, [-made.theorem, -made.theorem], [made.theorem, made.theorem], { class: "proven" });
  chart.line("error", xs, xs.map((s) => made.value(s) - cutOff(s, LOW, HIGH)), { class: "error" });
  chart.legend([{ class: "error", name: "head − line" }, { class: "proven", shape: "band", name: "what the theorem allows" }]);
  chart.describe(`The error stays ${largestError(made, xs).error <= made.theorem ? "within" : "not within"} the theorem's line of ${shown(made.theorem)}.`);
  chart.render();
}

function sizeStage() {
  const chart = new Chart({ label: "Error against the number of anchors", x: { label: "anchors p", log: true, ticks: [2, 4, 8, 16, 32, 64, 128] }, y: { label: "largest error", log: true }, height: 380, margins: { left: 70 } });
  const update = (settings) => {
    const all = SIZES.map((anchors) => single({ ...settings, anchors }));
    drawSizes(chart, SIZES, all, settings.anchors, single(settings));
    return verdict(single(settings), `(b − a)/p = 2/${settings.anchors}`);
  };
  return { element: chart.element, svg: () => chart.svg, update };
}

function severalStage() {
  const parts = new Chart({ label: "What each head adds", x: { label: "s" }, y: { label: "added by a head" }, height: 280 });
  const chart = new Chart({ label: "Error against the number of heads", x: { label: "heads H", log: true, ticks: [1, 2, 4, 8, 16, 32] }, y: { label: "largest error", log: true }, height: 280, margins: { left: 70 } });
  const update = (settings) => {
    const made = several(settings);
    const xs = spread(...VIEW, 420);
    for (const key of parts.keys("part")) parts.remove(key);
    drawRamp(parts, made);
    made.heads.forEach((_, h) => parts.line(`part ${h}`, xs, xs.map((s) => made.read(s, h)), { class: colour(h) }));
    parts.legend([{ class: "c0", name: "one head" }, { class: "head", name: "heads together" }, { class: "function", name: "s, cut off" }]);
    parts.describe(`${settings.heads} heads, each other than 0 on its part of the range alone; together they follow the truncated line.`);
    parts.render();
    drawSizes(chart, COUNTS, COUNTS.map((count) => several(settings, count)), settings.heads, made);
    return verdict(made, `(b − a)/((n − 2)H) = 2/${(settings.tokens - 2) * settings.heads}`);
  };
  return { element: element("div", {}, parts.element, chart.element), svg: () => parts.svg, update };
}

function drawSizes(chart, sizes, all, size, made) {
  const found = all.map((one) => largestError(one, pointsToTry(one, 12)).error);
  const theorem = all.map((one) => one.theorem);
  const here = largestError(made, pointsToTry(made)).error;
  chart.range([sizes[0] * 0.9, sizes.at(-1) * 1.1], [Math.min(...found, ...theorem) * 0.6, Math.max(...found, ...theorem) * 1.6]);
  chart.line("theorem", sizes, theorem, { class: "bound dashed" });
  chart.line("found", sizes, found, { class: "error" });
  chart.points("sizes", sizes, found, { class: "c1", radius: 3 });
  chart.points("here", [size], [here], { radius: 6 });
  chart.legend([{ class: "bound dashed", name: "the theorem's line" }, { class: "error", name: "largest error found" }, { class: "", shape: "points", name: "this one" }]);
  chart.tooltip((x) => {
    const k = sizes.reduce((near, one, j) => (Math.abs(Math.log(one / x)) < Math.abs(Math.log(sizes[near] / x)) ? j : near), 0);
    return [[chart.axes.x.label, String(sizes[k])], ["theorem", shown(theorem[k])], ["found", shown(found[k])]];
  });
  chart.describe(`Both lines fall as one over the number: at ${size} the theorem allows ${shown(made.theorem)}, found is ${shown(here)}.`);
  chart.render();
}

function verdict(made, formula) {
  const { error, at } = largestError(made, pointsToTry(made));
  const beyond = error > made.theorem ? " This is above the line: c is so small that the theorem's softmax term counts." : "";
  return `Largest error found: ${shown(error)}, at s = ${shown(at)}. The theorem's line: ${formula} = ${shown(made.theorem)}.${beyond}`;
}

const points = (half) =>
  `s = spacing / 24 * np.arange(-${half}, ${half + 1})`;

function singleCode({ anchors, c }) {
  const made = single({ anchors, c });
  return [
    "import numpy as np", "", "import anchorhead as ah", "",
    `spacing = 2 / ${anchors - 1}`,
    `net = ah.truncated_linear([[1.0]], [0.0], -1, 1, anchors=${anchors}, on=(-2, 2), sharpness=${c} / spacing**2)`,
    points((pointsToTry(made).length - 1) / 2),
    "error = np.abs(net(s[:, None, None])[:, 0, 0] - np.clip(s, -1, 1)).max()",
    "print(error, net.certificate)", "",
  ].join("\n");
}

function severalCode({ tokens, heads, c }) {
  const made = several({ tokens, heads, c });
  return [
    "import numpy as np", "", "import anchorhead as ah", "",
    `n, heads = ${tokens}, ${heads}`, "spacing = 2 / ((n - 2) * heads)",
    `net = ah.truncated_linear(np.ones((n, 1)), np.zeros(n), -1, 1, heads=heads, on=(-2, 2), sharpness=${c} / spacing**2)`,
    points((pointsToTry(made).length - 1) / 2),
    "x = np.repeat(s[:, None, None], n, axis=1)  # the same s at every token",
    "error = np.abs(net(x)[:, 0, 0] - np.clip(s, -1, 1)).max()",
    "print(error, net.certificate)", "",
  ].join("\n");
}
