/* The pictures of the first story. Each is {element, svg(), update(settings)}; update returns what is to be read beside it. */

import { Chart } from "../chart.js";
import { element } from "../dom.js";
import { shown, spread } from "../numbers.js";
import { cutOff, largestError, pointsToTry, severalHeads, singleHead } from "./ramp.js";

const [LOW, HIGH] = [-1, 1];
const VIEW = [-1.5, 1.5]; // what is drawn of s
const SIZES = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128];
const COUNTS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
const MAX_ROWS = 8;
const colour = (k) => `c${k % 7}`;

/** The head of the settings, on [-1, 1]. */
export function single({ anchors, c }) {
  return singleHead({ low: LOW, high: HIGH, anchors, c });
}

/** The heads of the settings, or `count` of them. */
export function several({ tokens, heads, c }, count = heads) {
  return severalHeads({ low: LOW, high: HIGH, tokens, heads: count, c });
}

/** Step 1: the score of every anchor along s, and a table of keys and values. */
export function scoreStage() {
  const chart = new Chart({
    label: "Scores of the anchors",
    x: { label: "s" },
    y: { label: "key · query" },
    height: 340,
  });
  const body = element("tbody");
  const head = ["anchor", "place", "key", "value", "score at s"].map((word) => element("th", { scope: "col" }, word));
  const table = element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Anchors" },
    element("table", {}, element("thead", {}, element("tr", {}, head)), body),
  );
  const update = (settings) => {
    const made = single(settings);
    const lines = made.k.map((_, j) => VIEW.map((s) => made.logits(s)[j]));
    const top = settings.c * made.query(VIEW[1]) ** 2;
    chart.range(VIEW, [-0.35 * top, top]);
    for (const key of chart.keys("anchor")) chart.remove(key);
    const xs = spread(...VIEW, 160);
    chart.line(
      "parabola",
      xs,
      xs.map((s) => settings.c * made.query(s) ** 2),
      { class: "dotted" },
    );
    lines.forEach((ys, j) => chart.line(`anchor ${j}`, VIEW, ys, { class: `thin ${colour(j)}` }));
    chart.points(
      "anchor places",
      made.anchors[0],
      made.k.map((k) => settings.c * k * k),
      { radius: 4 },
    );
    chart.line("s", [settings.s, settings.s], [-top, top], { class: "thin" });
    const scores = made.logits(settings.s);
    const best = scores.indexOf(Math.max(...scores));
    chart.points("best", [settings.s], [scores[best]], { class: colour(best), radius: 6 });
    chart.describe(
      `Straight lines, one for each of ${settings.anchors} anchors; at s = ${shown(settings.s)} that of anchor ${best + 1} is highest.`,
    );
    chart.legend([
      { class: "thin c0", name: "score of an anchor" },
      { class: "dotted", name: "c·q², their envelope" },
      { class: "", shape: "points", name: "anchors" },
    ]);
    chart.render();
    body.replaceChildren(...rowsOf(made, scores, best));
    return `At s = ${shown(settings.s)} anchor ${best + 1}, at ${shown(made.anchors[0][best])}, has the highest score.`;
  };
  return { element: element("div", {}, chart.element, table), svg: () => chart.svg, update };
}

function rowsOf(made, scores, best) {
  const count = made.k.length;
  const chosen = made.k.map((_, j) => j).filter((j) => count <= MAX_ROWS || Math.abs(j - best) < MAX_ROWS / 2);
  return chosen.map((j) =>
    element(
      "tr",
      { class: j === best ? "sum" : "" },
      element("th", { scope: "row" }, String(j + 1)),
      [
        shown(made.anchors[0][j]),
        `(${shown(2 * made.c * made.k[j])}, ${shown(-made.c * made.k[j] ** 2)})`,
        shown(made.k[j]),
        shown(scores[j]),
      ].map((text) => element("td", {}, text)),
    ),
  );
}

/** Step 2: the weight of every anchor along s. */
export function weightStage() {
  const chart = new Chart({
    label: "Attention along s",
    x: { label: "s" },
    y: { label: "attention weight" },
    height: 340,
  });
  const update = (settings) => {
    const made = single(settings);
    const xs = spread(...VIEW, 480);
    const all = Array.from(xs, (s) => made.weights(s));
    const here = made.weights(settings.s);
    chart.range(VIEW, [0, 1.02]);
    for (const key of chart.keys("anchor")) chart.remove(key);
    made.k.forEach((_, j) =>
      chart.line(
        `anchor ${j}`,
        xs,
        all.map((weights) => weights[j]),
        { class: colour(j) },
      ),
    );
    chart.line("s", [settings.s, settings.s], [0, 1.02], { class: "thin" });
    chart.points(
      "here",
      here.map(() => settings.s),
      here,
      { radius: 4.5 },
    );
    chart.points(
      "anchors",
      made.anchors[0],
      made.k.map(() => 0),
      { radius: 5 },
    );
    chart.legend([
      { class: "c0", name: "weight of an anchor" },
      { class: "", shape: "points", name: "anchors on the axis, weights at s" },
    ]);
    chart.render();
    const best = here
      .map((weight, j) => ({ weight, j }))
      .sort((a, b) => b.weight - a.weight)
      .slice(0, 3);
    const text = best
      .map(({ weight, j }) => `${(100 * weight).toFixed(1)} % on the anchor at ${shown(made.anchors[0][j])}`)
      .join(", ");
    chart.describe(`Attention weights of ${settings.anchors} anchors. At s = ${shown(settings.s)}: ${text}.`);
    return `At s = ${shown(settings.s)}: ${text}.`;
  };
  return { element: chart.element, svg: () => chart.svg, update };
}

/** Step 3: the head, the truncated line, and their difference under the theorem's line. */
export function headStage() {
  const chart = new Chart({ label: "Head and truncated line", x: { label: "s" }, y: { label: "value" }, height: 300 });
  const errors = new Chart({
    label: "Error",
    x: { label: "s" },
    y: { label: "head − line" },
    height: 220,
    margins: { left: 70 },
  });
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
  chart.line(
    "line",
    xs,
    xs.map((s) => cutOff(s, LOW, HIGH)),
    { class: "function" },
  );
  chart.line("head", xs, xs.map(made.value), { class: "head" });
  chart.legend([
    { class: "function", name: "s, cut off at −1 and 1" },
    { class: "head", name: made.heads.length > 1 ? "heads together" : "head" },
  ]);
}

function drawErrors(chart, made) {
  const xs = pointsToTry(made);
  chart.range(VIEW, [-1.15 * made.theorem, 1.15 * made.theorem]);
  chart.band("theorem", VIEW, [-made.theorem, -made.theorem], [made.theorem, made.theorem], { class: "proven" });
  chart.line(
    "error",
    xs,
    xs.map((s) => made.value(s) - cutOff(s, LOW, HIGH)),
    { class: "error" },
  );
  chart.legend([
    { class: "error", name: "head − line" },
    { class: "proven", shape: "band", name: "what the theorem allows" },
  ]);
  chart.describe(
    `The error stays ${largestError(made, xs).error <= made.theorem ? "within" : "not within"} the theorem's line of ${shown(made.theorem)}.`,
  );
  chart.render();
}

/** Step 4: the error against p. */
export function sizeStage() {
  const chart = new Chart({
    label: "Error against the number of anchors",
    x: { label: "anchors p", log: true, ticks: [2, 4, 8, 16, 32, 64, 128] },
    y: { label: "largest error", log: true },
    height: 380,
    margins: { left: 70 },
  });
  const update = (settings) => {
    const all = SIZES.map((anchors) => single({ ...settings, anchors }));
    drawSizes(chart, SIZES, all, settings.anchors, single(settings));
    return verdict(single(settings), `(b − a)/p = 2/${settings.anchors}`);
  };
  return { element: chart.element, svg: () => chart.svg, update };
}

/** Step 5: what each head adds, and the error against H. */
export function severalStage() {
  const parts = new Chart({
    label: "What each head adds",
    x: { label: "s" },
    y: { label: "added by a head" },
    height: 280,
  });
  const chart = new Chart({
    label: "Error against the number of heads",
    x: { label: "heads H", log: true, ticks: [1, 2, 4, 8, 16, 32] },
    y: { label: "largest error", log: true },
    height: 280,
    margins: { left: 70 },
  });
  const update = (settings) => {
    const made = several(settings);
    const xs = spread(...VIEW, 420);
    for (const key of parts.keys("part")) parts.remove(key);
    drawRamp(parts, made);
    made.heads.forEach((_, h) =>
      parts.line(
        `part ${h}`,
        xs,
        xs.map((s) => made.read(s, h)),
        { class: colour(h) },
      ),
    );
    parts.legend([
      { class: "c0", name: "one head" },
      { class: "head", name: "heads together" },
      { class: "function", name: "s, cut off" },
    ]);
    parts.describe(
      `${settings.heads} heads, each other than 0 on its part of the range alone; together they follow the truncated line.`,
    );
    parts.render();
    drawSizes(
      chart,
      COUNTS,
      COUNTS.map((count) => several(settings, count)),
      settings.heads,
      made,
    );
    return verdict(made, `(b − a)/((n − 2)H) = 2/${(settings.tokens - 2) * settings.heads}`);
  };
  return { element: element("div", {}, parts.element, chart.element), svg: () => parts.svg, update };
}

function drawSizes(chart, sizes, all, size, made) {
  const found = all.map((one) => largestError(one, pointsToTry(one, 12)).error);
  const theorem = all.map((one) => one.theorem);
  const here = largestError(made, pointsToTry(made)).error;
  chart.range(
    [sizes[0] * 0.9, sizes.at(-1) * 1.1],
    [Math.min(...found, ...theorem) * 0.6, Math.max(...found, ...theorem) * 1.6],
  );
  chart.line("theorem", sizes, theorem, { class: "bound dashed" });
  chart.line("found", sizes, found, { class: "error" });
  chart.points("sizes", sizes, found, { class: "c1", radius: 3 });
  chart.points("here", [size], [here], { radius: 6 });
  chart.legend([
    { class: "bound dashed", name: "the theorem's line" },
    { class: "error", name: "largest error found" },
    { class: "", shape: "points", name: "this one" },
  ]);
  chart.tooltip((x) => {
    const k = sizes.reduce(
      (near, one, j) => (Math.abs(Math.log(one / x)) < Math.abs(Math.log(sizes[near] / x)) ? j : near),
      0,
    );
    return [
      [chart.axes.x.label, String(sizes[k])],
      ["theorem", shown(theorem[k])],
      ["found", shown(found[k])],
    ];
  });
  chart.describe(
    `Both lines fall as one over the number: at ${size} the theorem allows ${shown(made.theorem)}, found is ${shown(here)}.`,
  );
  chart.render();
}

function verdict(made, formula) {
  const { error, at } = largestError(made, pointsToTry(made));
  const beyond =
    error > made.theorem ? " This is above the line: c is so small that the theorem's softmax term counts." : "";
  return `Largest error found: ${shown(error)}, at s = ${shown(at)}. The theorem's line: ${formula} = ${shown(made.theorem)}.${beyond}`;
}
