/* In context: examples in a plane, and a learner whose attention layers are steps of gradient descent. */

import { button, choice, panel, select, slider } from "../controls.js";
import { announce, element, oncePerFrame } from "../dom.js";
import { pythonOf } from "../learner/code.js";
import {
  SHARPNESS,
  exactPath,
  learn,
  leastSquares,
  logisticLearner,
  meanLoss,
  safeRate,
  squaredLearner,
} from "../learner/learner.js";
import { LearnerPictures } from "../learner/pictures.js";
import { Plane } from "../learner/plane.js";
import { MOST, SETS, STEPS, labelled, named, started } from "../learner/settings.js";
import { ExampleTable } from "../learner/table.js";
import { bytesOf, exampleNetworks } from "../network/examples.js";
import { openNetwork } from "../network/file.js";
import { shown } from "../numbers.js";

const BEAT = 140; // milliseconds a step

function mount(root, given, changed) {
  const now = started(given);
  const stored = openNetwork(bytesOf(exampleNetworks().find((one) => one.name === "logistic-learner"))).network;
  let playing = 0;
  let found = null;

  const asked = {
    add: (x, y) =>
      now.examples.length < MOST ? put(() => now.examples.push([x, y])) : announce(`At most ${MOST} examples.`),
    move: (i, x, y) => put(() => (now.examples[i] = [x, y])),
    remove: (i) => put(() => now.examples.splice(i, 1)),
  };
  const plane = new Plane(asked);
  const table = new ExampleTable(asked);
  const charts = new LearnerPictures();

  const sets = select({
    label: "Examples",
    options: [...Object.keys(SETS), "your own"],
    value: named(now.examples),
    changed: (name) => SETS[name] && put(() => (now.examples = labelled(SETS[name], now.loss))),
  });
  const kind = choice({
    label: "Loss",
    options: ["squared", "logistic"],
    value: now.loss,
    changed: (loss) => put(() => switchTo(loss)),
  });
  const rate = slider({
    label: "Rate",
    min: 0.02,
    max: 2,
    step: 0.02,
    value: now.rate,
    format: (v) => v.toFixed(2),
    changed: (value) => put(() => (now.rate = value)),
  });
  const sharpness = slider({
    label: "Sharpness h",
    min: -11,
    max: 2,
    value: Math.log2(now.sharpness),
    format: (v) => (v < 0 ? `1/${2 ** -v}` : String(2 ** v)),
    note: "Small: the head reads the gradient. Large: it looks at the worst examples alone.",
    changed: (value) => put(() => (now.sharpness = 2 ** value)),
  });
  const step = slider({
    label: `Step, of ${STEPS}`,
    min: 0,
    max: STEPS,
    value: now.step,
    changed: (value) => put(() => (now.step = value)),
  });
  const play = button({ label: "Play", kind: "main", pressed: () => (playing ? pause() : start()) });
  const again = button({ label: "Start again", pressed: () => put(() => (now.step = 0)) });
  const problem = element("div", { role: "alert" });
  const verdict = element("p", { class: "verdict" });

  root.append(
    element(
      "div",
      { class: "workbench" },
      element(
        "div",
        { class: "side" },
        panel(
          "In context",
          "The examples are the prompt. Each step is one attention layer (three for the logistic loss): a state token that holds the line looks at the examples and moves it.",
          kind.element,
          sets.element,
          step.element,
          element("div", { class: "row-of" }, play, again),
          rate.element,
          sharpness.element,
          problem,
        ),
      ),
      element(
        "div",
        { class: "pictures" },
        panel(
          "The line and its examples",
          "Click to add an example, drag it, or use its arrow keys. Large points pull most: blue ones lie below the line, orange ones above it.",
          plane.element,
          verdict,
        ),
        panel(
          "Weights of the heads",
          "Each example is there twice, once with either sign. With r, what the line misses it by, a head weighs the copy by exp(h r) and its negative by exp(−h r), so what it reads is h times the gradient, nearly; a second head at 2h takes most of the rest away.",
          charts.pulls.element,
        ),
        panel(
          "Loss",
          "The mean over the examples: of half the square of what the line misses by, or of the logistic loss.",
          charts.losses.element,
        ),
        panel(
          "Distance from exact gradient descent",
          "The larger difference of slope and intercept. The learner never computes a gradient: each step is a softmax over keys.",
          charts.distances.element,
        ),
        element(
          "div",
          { class: "wide" },
          panel(
            "Examples",
            "Type numbers from −1 to 1. Copy and negative are the first head's weights at this step.",
            table.element,
            element(
              "div",
              { class: "row-of start" },
              button({ label: "Add an example", pressed: () => asked.add(0, 0) }),
              button({ label: "Remove all", pressed: () => put(() => (now.examples = [])) }),
            ),
          ),
        ),
      ),
    ),
  );
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
    const wrong = !examples.length
      ? "Give at least one example."
      : now.rate > safe
        ? `The rate ${now.rate.toFixed(2)} is too large for these examples: gradient descent diverges. The largest safe rate is ${shown(safe, 4)}.`
        : null;
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
    plane.draw({
      examples,
      pulls: pull.map((one) => one / most),
      lines: found ? found.path.slice(0, now.step + 1) : [],
      best: examples.length && now.loss === "squared" ? leastSquares(examples) : null,
      loss: now.loss,
    });
    const best = { class: "dotted", name: "least squares" };
    plane.chart.legend([
      { class: "learned", name: "what is learned" },
      { class: "thin past", name: "earlier steps" },
      ...(now.loss === "squared" ? [best] : []),
    ]);
    table.draw(examples, now.loss, line, weights?.[0]);
    charts.drawWeights(weights, examples);
    charts.drawCourse(examples, now.loss, found, now.step);
    const sum = line && `${shown(line[0], 4)} x ${line[1] < 0 ? "−" : "+"} ${shown(Math.abs(line[1]), 4)}`;
    const says = now.loss === "squared" ? `y = ${sum}` : `the probability of 1 is sigmoid(${sum})`;
    verdict.textContent = line
      ? `After ${now.step} steps: ${says}, loss ${shown(meanLoss(examples, now.loss, line))}.`
      : "";
    plane.chart.describe(`${examples.length} examples. ${verdict.textContent}`);
  }

  const later = oncePerFrame(update);
  update();
  return {
    state: () => ({ ...now }),
    svg: () => plane.chart.svg,
    python: () => pythonOf(now),
    unmount: pause,
    path: () => found?.path ?? null,
  };
}

export const view = { name: "incontext", title: "In context", mount };
