/* The paper's theorems as two stories of five steps: words, sliders, a live picture, and the theorem's line beside the
   error of the very network. */

import { button, choice, panel, select, slider } from "../controls.js";
import { announce, element, oncePerFrame } from "../dom.js";
import { shown } from "../numbers.js";
import { HEADS_STORY } from "../theorems/heads_story.js";
import { LAYERS_STORY } from "../theorems/layers_story.js";
import { FUNCTIONS } from "../theorems/two_layers.js";

const STORIES = [HEADS_STORY, LAYERS_STORY];
const CONTROLS = {
  anchors: { label: "Anchors p", min: 2, max: 64, step: 1, value: 8 },
  tokens: { label: "Tokens n", min: 3, max: 16, step: 1, value: 8 },
  heads: { label: "Heads H", min: 1, max: 16, step: 1, value: 4 },
  side: { label: "Anchors along an axis, p", min: 2, max: 24, step: 1, value: 8 },
  c: { label: "Sharpness c", min: 0.25, max: 8, step: 0.25, value: 2.75 },
  s: { label: "The token's number s", min: -1.5, max: 1.5, step: 0.01, value: 0.3 },
  x: { label: "First token, x", min: -1, max: 1, step: 0.01, value: 0.4 },
  y: { label: "Second token, y", min: -1, max: 1, step: 0.01, value: -0.35 },
};

function mount(root, given, changed) {
  const now = started(given);
  const stages = new Map(); // by story and step: each is made once
  let stage = null;
  const story = () => STORIES.find((one) => one.name === now.story);

  const stories = choice({
    label: "Story",
    options: STORIES.map((one) => ({ value: one.name, label: one.title })),
    value: now.story,
    changed: (name) => go(name, 0),
  });
  const steps = element("ol", { class: "steps", "aria-label": "Steps" });
  const words = element("div", { class: "words-of" });
  const sliders = element("div");
  const verdict = element("p", { class: "verdict", "aria-live": "polite" });
  const back = button({ label: "Previous", pressed: () => go(now.story, now.step - 1) });
  const next = button({ label: "Next", kind: "main", pressed: () => go(now.story, now.step + 1) });
  const picture = element("div", { class: "stage" });
  const heading = element("h2", { id: "story-step", tabindex: "-1" });
  root.append(
    element("div", { class: "story-top" }, stories.element, steps),
    element(
      "div",
      { class: "workbench story" },
      element(
        "section",
        { class: "panel side", "aria-labelledby": "story-step" },
        heading,
        words,
        sliders,
        element("div", { class: "row-of" }, back, next),
        element(
          "small",
          { class: "note" },
          "After “Universal Approximation with Softmax Attention”, arXiv 2504.15956.",
        ),
      ),
      panel("See it", null, picture, verdict),
    ),
  );
  steps.addEventListener("keydown", (event) => {
    const to = { ArrowRight: now.step + 1, ArrowLeft: now.step - 1, Home: 0, End: 4 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    go(now.story, to);
    steps.querySelector("[aria-current]").focus();
  });

  function go(name, step) {
    now.story = name;
    now.step = Math.min(Math.max(0, step), story().steps.length - 1);
    show();
    announce(`Step ${now.step + 1} of ${story().steps.length}: ${story().steps[now.step].title}`);
    changed();
  }

  function show() {
    const step = story().steps[now.step];
    stories.value = now.story;
    heading.textContent = `${now.step + 1}. ${step.title}`;
    words.replaceChildren(...step.text.map((one) => element("p", {}, one)));
    sliders.replaceChildren(...step.controls.map(control));
    steps.replaceChildren(...story().steps.map((one, k) => indicator(one, k)));
    back.disabled = now.step === 0;
    next.disabled = now.step === story().steps.length - 1;
    const place = `${now.story} ${now.step}`;
    if (!stages.has(place)) stages.set(place, step.stage());
    stage = stages.get(place);
    picture.replaceChildren(stage.element);
    update();
  }

  function indicator(step, k) {
    const here = k === now.step;
    const made = button({ label: "", pressed: () => go(now.story, k) });
    made.append(element("span", { class: "number" }, String(k + 1)), element("span", { class: "title" }, step.title));
    made.setAttribute("aria-label", `Step ${k + 1}: ${step.title}`);
    if (here) made.setAttribute("aria-current", "step");
    return element("li", { class: k < now.step ? "done" : "" }, made);
  }

  function control(name) {
    const put = (value) => {
      now[name] = value;
      later();
      changed();
    };
    if (name === "f")
      return select({ label: "Function f", options: FUNCTIONS.map((one) => one.name), value: now.f, changed: put })
        .element;
    return slider({ ...CONTROLS[name], value: now[name], format: (value) => shown(value, 4), changed: put }).element;
  }

  function update() {
    verdict.textContent = stage.update(now);
  }

  const later = oncePerFrame(update);
  const redraw = () => later();
  document.addEventListener("themechange", redraw);
  show();
  return {
    state: () => ({ ...now }),
    svg: () => stage.svg(),
    python: () => story().python(now, now.step),
    unmount: () => document.removeEventListener("themechange", redraw),
    measured: () => story().measured(now, now.step),
  };
}

function started(given) {
  const from = given ?? {};
  const now = { story: STORIES.find((one) => one.name === from.story)?.name ?? STORIES[0].name };
  now.step = [0, 1, 2, 3, 4].includes(from.step) ? from.step : 0;
  for (const [name, { min, max, step, value }] of Object.entries(CONTROLS)) {
    const good = Number.isFinite(from[name]) && from[name] >= min && from[name] <= max;
    now[name] = good ? (step === 1 ? Math.round(from[name]) : from[name]) : value;
  }
  now.f = FUNCTIONS.find((one) => one.name === from.f)?.name ?? FUNCTIONS[0].name;
  return now;
}

export const view = { name: "theorems", title: "Two theorems", mount };
