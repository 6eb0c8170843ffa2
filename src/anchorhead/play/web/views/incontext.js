/* In context: examples in a plane, and a learner whose attention layers are steps of gradient descent. */

import { Chart } from "../chart.js";
import { button, choice, panel, select, slider } from "../controls.js";
import { announce, element, oncePerFrame } from "../dom.js";
import { LOSSES, SHARPNESS, exactPath, learn, leastSquares, logisticLearner, meanLoss, safeRate, squaredLearner } from "../learner/learner.js";
import { Plane } from "../learner/plane.js";
import { ExampleTable } from "../learner/table.js";
import { bytesOf, exampleNetworks } from "../network/examples.js";
import { openNetwork } from "../network/file.js";
import { python as exactly, shown } from "../numbers.js";

const MOST = 60; // examples: certificates of the Python learner cover 64
const STEPS = 60;
const BEAT = 140; // milliseconds a step
const SETS = {
  "a noisy line": [[-0.85, -0.52], [-0.6, -0.25], [-0.42, -0.34], [-0.15, 0.08], [0.1, -0.02], [0.32, 0.35], [0.55, 0.28], [0.8, 0.62]],
  "a line and an outlier": [[-0.9, 0.5], [-0.6, 0.38], [-0.3, 0.2], [0, 0.06], [0.3, -0.1], [0.6, -0.26], [0.85, 0.9]],
  "two classes": [[-0.9, 0], [-0.7, 0], [-0.45, 0], [-0.2, 1], [-0.05, 0], [0.2, 1], [0.45, 1], [0.6, 0], [0.75, 1], [0.9, 1]],
  "two clusters": [[-0.75, 0.6], [-0.7, 0.75], [-0.62, 0.55], [-0.82, 0.7], [0.55, -0.1], [0.62, 0.05], [0.7, -0.2], [0.5, 0.0]],
};

function mount(root, given, changed) {
  const now = started(given);
  const stored = openNetwork(bytesOf(exampleNetworks().find((one) => one.name === "logistic-learner"))).network;
  let playing = 0;
  let found = null;

  const asked = {
    add: (x, y) => (now.examples.length < MOST ? put(() => now.examples.push([x, y])) : announce(`At most ${MOST} examples.`)),
    move: (i, x, y) => put(() => (now.examples[i] = [x, y])),
    remove: (i) => put(() => now.examples.splice(i, 1)),
  };
  const plane = new Plane(asked);
  const table = new ExampleTable(asked);
  const losses = new Chart({ label: "Loss after each step", x: { label: "step" }, y: { label: "loss" }, height: 220 });
  const distances = new Chart({ label: "Distance from exact gradient descent", x: { label: "step" }, y: { label: "distance", log: true, format: (v) => v.toExponential(0).replace("-", "−") }, height: 220, margins: { left: 70 } });
  const pulls = new Chart({ label: "Weights of the heads on the examples", x: { label: "example" }, y: { label: "copy − negative" }, height: 220, margins: { left: 84 } });

  const sets = select({ label: "Examples", options: [...Object.keys(SETS), "your own"], value: named(now.examples), changed: (name) => SETS[name] && put(() => (now.examples = labelled(SETS[name], now.loss))) });
  const kind = choice({ label: "Loss", options: ["squared", "logistic"], value: now.loss, changed: (loss) => put(() => switchTo(loss)) });
  const rate = slider({ label: "Rate", min: 0.02, max: 2, step: 0.02, value: now.rate, format: (v) => v.toFixed(2), changed: (value) => put(() => (now.rate = value)) });
  const sharpness = slider({ label: "Sharpness h", min: -11, max: 2, value: Math.log2(now.sharpness), format: (v) => (v < 0 ? `1/${2 ** -v}` : String(2 ** v)), note: "Small: the head reads the gradient. Large: it looks at the worst examples alone.", changed: (value) => put(() => (now.sharpness = 2 ** value)) });
  const step = slider({ label: `Step, of ${STEPS}`, min: 0, max: STEPS, value: now.step, changed: (value) => put(() => (now.step = value)) });
  const play = button({ label: "Play", kind: "main", pressed: () => (playing ? pause() : start()) });
  const again = button({ label: "Start again", pressed: () => put(() => (now.step = 0)) });
  const problem = element("div", { role: "alert" });
  const verdict = element("p", { class: "verdict" });

  root.append(
    element(
      "div", { class: "workbench" },
      element("div", { class: "side" }, panel("In context", "The examples are the prompt. Each step is one attention layer (three for the logistic loss): a state token that holds the line looks at the examples and moves it.", kind.element, sets.element, step.element, element("div", { class: "row-of" }, play, again), rate.element, sharpness.element, problem)),
      element(
        "div", { class: "pictures" },
        panel("The line and its examples", "Click to add an example, drag it, or use its arrow keys. Large points pull most: blue ones lie below the line, orange ones above it.", plane.element, verdict),
        panel("Weights of the heads", "Each example is there twice, once with either sign. With r, what the line misses it by, a head weighs the copy by exp(h r) and its negative by exp(−h r), so what it reads is h times the gradient, nearly; a second head at 2h takes most of the rest away.", pulls.element),
        panel("Loss", "The mean over the examples: of half the square of what the line misses by, or of the logistic loss.", losses.element),
        panel("Distance from exact gradient descent", "The larger difference of slope and intercept. The learner never computes a gradient: each step is a softmax over keys.", distances.element),
        element("div", { class: "wide" }, panel("Examples", "Type numbers from −1 to 1. Copy and negative are the first head's weights at this step.", table.element, element("div", { class: "row-of start" }, button({ label: "Add an example", pressed: () => asked.add(0, 0) }), button({ label: "Remove all", pressed: () => put(() => (now.examples = [])) })))),
      ),
    ),
  );
  losses.legend([{ class: "head", name: "the learner" }, { class: "thin", name: "exact gradient descent" }]);
  pulls.legend([{ class: "c0", shape: "points", name: "head at h" }, { class: "c3", shape: "points", name: "head at 2h" }]);

  function put(change) {
    change();
    later();
    changed();
  }

  function switchTo(loss) {
    const usual = { squared: "a noisy line", logistic: "two classes" };
    const examples = named(now.examples) === "your own" ? now.examples : SETS[usual[loss]];
    Object.assign(now, { loss, examples: labelled(examples, loss), sharpness: SHARPNESS });
  }

  function start() {
    if (now.step >= STEPS) now.step = 0;
    play.textContent = "Pause";
    playing = setInterval(() => (now.step >= STEPS ? pause() : put(() => (now.step += 1))), BEAT);
  }

  function pause() {
    clearInterval(playing);
    playing = 0;
    play.textContent = "Play";
  }

  function update() {
    const { examples } = now;
    const safe = examples.length ? safeRate(examples, now.loss) : Infinity;
    const settings = { loss: now.loss, rate: now.rate, steps: STEPS, sharpness: now.sharpness };
    const wrong = !examples.length ? "Give at least one example." : now.rate > safe ? `The rate ${now.rate.toFixed(2)} is too large for these examples: gradient descent diverges. The largest safe rate is ${shown(safe, 4)}.` : null;
    problem.replaceChildren(...(wrong ? [element("p", { class: "problem" }, wrong)] : []));
    const net = now.loss === "squared" ? squaredLearner(settings) : logisticLearner(stored, settings);
    found = wrong ? null : { ...learn(net, examples), exact: exactPath(examples, settings) };
    sets.value = named(examples);
    sharpness.element.hidden = now.loss !== "squared";
    sharpness.value = Math.log2(now.sharpness);
    step.value = now.step;
    draw(examples);
  }

  function draw(examples) {
    const line = found?.path[now.step] ?? null;
    const weights = found ? found.weights[Math.min(now.step, STEPS - 1)] : null;
    const pull = weights ? weights[0].map(({ copy, negative }) => copy - negative) : [];
    const most = Math.max(...pull.map(Math.abs)) || 1;
    plane.draw({ examples, pulls: pull.map((one) => one / most), lines: found ? found.path.slice(0, now.step + 1) : [], best: examples.length && now.loss === "squared" ? leastSquares(examples) : null, loss: now.loss });
    const best = { class: "dotted", name: "least squares" };
    plane.chart.legend([{ class: "learned", name: "what is learned" }, { class: "thin past", name: "earlier steps" }, ...(now.loss === "squared" ? [best] : [])]);
    table.draw(examples, now.loss, line, weights?.[0]);
    drawWeights(weights);
    drawCourse(examples);
    const sum = line && `${shown(line[0], 4)} x ${line[1] < 0 ? "−" : "+"} ${shown(Math.abs(line[1]), 4)}`;
    const says = now.loss === "squared" ? `y = ${sum}` : `the probability of 1 is sigmoid(${sum})`;
    verdict.textContent = line ? `After ${now.step} steps: ${says}, loss ${shown(meanLoss(examples, now.loss, line))}.` : "";
    plane.chart.describe(`${examples.length} examples. ${verdict.textContent}`);
  }

  function drawWeights(weights) {
    const count = now.examples.length;
    const heads = weights ? weights.map((head) => head.map(({ copy, negative }) => copy - negative)) : [[], []];
    const most = 1.1 * Math.max(1e-12, ...heads.flat().map(Math.abs));
    pulls.range([0.4, Math.max(1, count) + 0.6], [-most, most]);
    pulls.axes.x.ticks = now.examples.map((_, i) => i + 1).filter((i) => (i - 1) % Math.ceil(count / 12) === 0);
    ["c0", "c3"].forEach((kind, h) => {
      const at = heads[h].map((_, i) => i + 1 + (h ? 0.12 : -0.12));
      pulls.line(`stems ${h}`, at.flatMap((x) => [x, x, x]), heads[h].flatMap((value) => [0, value, Number.NaN]), { class: kind });
      pulls.points(`heads ${h}`, at, heads[h], { class: kind, radius: 4 });
    });
    pulls.tooltip((x) => {
      const i = Math.round(x) - 1;
      if (!weights || !(i in now.examples)) return null;
      return [[`example ${i + 1}`, ""], ...weights.map((head, h) => [h ? "at 2h" : "at h", `${shown(head[i].copy, 5)} − ${shown(head[i].negative, 5)}`])];
    });
    pulls.render();
  }

  function drawCourse(examples) {
    const steps = Array.from({ length: STEPS + 1 }, (_, k) => k);
    const learned = found ? found.path.map((w) => meanLoss(examples, now.loss, w)) : [];
    const exact = found ? found.exact.map((w) => meanLoss(examples, now.loss, w)) : [];
    const away = found ? found.path.map((w, k) => Math.max(...w.map((one, j) => Math.abs(one - found.exact[k][j])))) : [];
    losses.range([0, STEPS], [0, 1.05 * Math.max(1e-9, ...learned, ...exact)]);
    losses.line("exact", steps.slice(0, exact.length), exact, { class: "thin" });
    losses.line("learner", steps.slice(0, learned.length), learned, { class: "head" });
    losses.points("now", found ? [now.step] : [], found ? [learned[now.step]] : [], { radius: 5 });
    losses.render();
    const low = Math.min(1e-15, ...away.filter((one) => one > 0));
    distances.range([0, STEPS], [low / 2, 4 * Math.max(1e-12, ...away)]);
    distances.line("away", steps.slice(0, away.length), away, { class: "error" });
    distances.points("now", found && away[now.step] > 0 ? [now.step] : [], found ? [away[now.step]] : [], { radius: 5 });
    distances.describe(found ? `After all steps the learner is ${shown(away.at(-1))} from exact gradient descent.` : "Nothing was learned.");
    for (const chart of [losses, distances])
      chart.tooltip((x) => {
        const k = Math.round(x);
        if (!found || !(k in learned)) return null;
        return [["step", String(k)], ["loss", shown(learned[k])], ["away", shown(away[k])]];
      });
    distances.render();
  }

  function python() {
    if (!now.examples.length) return null;
    const list = (k) => now.examples.map((one) => exactly(one[k]));
    const call = `net = incontext.gradient_descent(\n    "${now.loss}", steps=${STEPS}, rate=${exactly(now.rate)}, features=1, intercept=True, on=(-1, 1), labels=(-1, 1)\n)`;
    const own = now.sharpness !== SHARPNESS;
    return [
      "import numpy as np", "", "from anchorhead import incontext",
      ...(own ? ["from anchorhead.incontext.learner import Learner", "from anchorhead.incontext.squared import squared_network"] : []), "",
      `X = np.array([${list(0).join(", ")}])[:, None]`, `y = np.array([${list(1).join(", ")}])`, call,
      ...(own ? [`net = Learner.of(squared_network(net.descent, sharpness=${exactly(now.sharpness)}, dtype="float64"))`] : []),
      "prompt = net.prompt(X, y)", "path = net(prompt, path=True)  # slope and intercept after 0, 1, ... steps", "print(path[-1], net.exact(prompt))",
      ...(own ? [] : ["print(net.certify(prompt))"]), "",
    ].join("\n");
  }

  const later = oncePerFrame(update);
  update();
  return { state: () => ({ ...now }), svg: () => plane.chart.svg, python, unmount: pause, path: () => found?.path ?? null };
}

function started(given) {
  const { examples, rate, step, sharpness, loss } = given ?? {};
  const kind = Object.hasOwn(LOSSES, String(loss)) ? loss : "squared";
  const number = (value, low, high, otherwise) => (Number.isFinite(value) && value >= low && value <= high ? value : otherwise);
  const inside = (value) => Number.isFinite(value) && Math.abs(value) <= 1;
  const fits = Array.isArray(examples) && examples.length <= MOST && examples.every((one) => Array.isArray(one) && one.length === 2 && one.every(inside));
  return {
    loss: kind,
    examples: labelled(fits ? examples : SETS[kind === "squared" ? "a noisy line" : "two classes"], kind),
    rate: number(rate, 0.02, 2, 0.5),
    step: Math.round(number(step, 0, STEPS, 0)),
    sharpness: kind === "squared" ? 2 ** Math.round(Math.log2(number(sharpness, SHARPNESS, 4, SHARPNESS))) : SHARPNESS,
  };
}

/** Examples with labels as the loss takes them: for the logistic loss 1 where y is above 0. */
function labelled(examples, loss) {
  return examples.map(([x, y]) => [x, loss === "logistic" ? Number(y > 0) : y]);
}

function named(examples) {
  const text = JSON.stringify(examples);
  return Object.keys(SETS).find((name) => JSON.stringify(SETS[name]) === text) ?? "your own";
}

export const view = { name: "incontext", title: "In context", mount };
