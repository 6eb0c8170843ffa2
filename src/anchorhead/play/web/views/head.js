/* One head: a function, its anchors as handles, and what softmax makes of them. */

import { panel } from "../controls.js";
import { announce, element, oncePerFrame } from "../dom.js";
import { anchorTable } from "../head/anchor_table.js";
import { codeOf } from "../head/code.js";
import { anchorCount, withAnchor, withOneLess, withOneMore } from "../head/geometry.js";
import { fromState, headOf, needsSolving, targetOf, toState, undefinedAt } from "../head/model.js";
import { headPictures } from "../head/pictures.js";
import { headSide } from "../head/side.js";
import { shown } from "../numbers.js";
import { largestError } from "../softmax.js";
import { solveValues } from "../solver.js";

const PAUSE = 140; // milliseconds without a change before anchors are solved for
const QUIET = 900; // before the error is said aloud

function mount(root, state, changed) {
  let model = fromState(state);
  let shownNow = null; // { key, model, target, head, bound, measured } of the last model that made sense
  let solving = 0;
  let saying = 0;

  const deed = {
    current: () => ({ head: shownNow.head, low: model.low, high: model.high, selected: selected() }),
    select(n) {
      if (n !== model.selected) set({ selected: n });
    },
    change(n, entries) {
      set({ placement: "own", own: withAnchor(shownNow.head, n, entries), selected: n });
    },
    hold: () => pictures.freeze(),
    release() {
      pictures.thaw();
      redraw();
    },
  };
  const pictures = headPictures(deed);
  const table = anchorTable(deed);
  const side = headSide(model, set, act);
  const formula = element("p", { class: "explanation" }, "head(s) = Σ value · softmax(slope · (s − origin) + offset). ");
  const fixed = element("span");
  formula.append(fixed);
  const tablePanel = panel("Anchors", null, formula, table.element);
  tablePanel.classList.add("wide");
  side.element.classList.add("side");
  const drawings = element("div", { class: "pictures" }, ...pictures.elements, tablePanel);
  root.append(element("div", { class: "workbench" }, side.element, drawings));

  function selected() {
    return Math.min(model.selected, anchorCount(shownNow.head) - 1);
  }

  function set(changes) {
    const before = model;
    model = { ...model, ...changes };
    if (changes.placement === "own" && !changes.own) model.own = plain(shownNow.head);
    if (changes.count !== undefined && model.placement === "own") model.own = resized(model.own, model.count, selected());
    if (model.placement === "own") model.count = Math.max(2, anchorCount(model.own));
    if (before.placement === "solved" && model.placement === "own" && changes.own) announce("The anchors are your own now.");
    changed();
    redraw();
  }

  function act() {
    if (shownNow) set({ placement: "own", own: plain(solveValues(shownNow.head, shownNow.target.f, model.low, model.high)) });
  }

  const redraw = oncePerFrame(() => {
    clearTimeout(solving);
    let target = null;
    let wrong = null;
    try {
      target = checkedTarget(model);
    } catch (problem) {
      wrong = problem;
    }
    side.show(model, wrong);
    drawings.classList.toggle("stale", wrong !== null);
    if (wrong !== null) return;
    if (shownNow && needsSolving(model, target) && shownNow.key !== keyOf(model)) {
      pictures.verdict.replaceChildren(element("span", { class: "badge" }, "solving"), " one moment …");
      solving = setTimeout(() => show(target), PAUSE);
    } else {
      show(target);
    }
  });

  function show(target) {
    if (shownNow?.key !== keyOf(model)) {
      const { head, bound } = headOf(model, target);
      shownNow = { key: keyOf(model), model, target, head, bound, measured: largestError(head, target.f, model.low, model.high) };
    }
    const { head, bound } = shownNow;
    const words = verdictOf(model, shownNow);
    pictures.verdict.replaceChildren(element("span", { class: `badge ${bound !== null ? "proven" : "measured"}` }, bound !== null ? "proven" : "measured"), words);
    pictures.draw({ ...shownNow, low: model.low, high: model.high, selected: selected() });
    table.show(head, selected());
    fixed.textContent = `Here the origin is ${shown(head.origin)}${head.bias ? `, and ${shown(head.bias)} is added at the end` : ""}${head.parts.length > 1 ? `; ${head.parts.length} softmaxes add up` : ""}.`;
    clearTimeout(saying);
    saying = setTimeout(() => announce(words.trim()), QUIET);
  }

  show(firstTarget());
  redraw();

  /** A link may hold an expression that is none: pictures show what can be shown then. */
  function firstTarget() {
    try {
      return checkedTarget(model);
    } catch {
      return targetOf({ ...model, source: "named", name: "gelu" });
    }
  }

  return {
    state: () => toState(model),
    svg: () => pictures.main.svg,
    python: () => codeOf(shownNow.model, shownNow.target, shownNow),
    unmount() {
      clearTimeout(solving);
      clearTimeout(saying);
    },
  };
}

/** The function, if it and its interval make sense. */
function checkedTarget(model) {
  if (!(model.low < model.high)) throw new RangeError("The interval is empty: give its lower end first.");
  const target = targetOf(model);
  const hole = undefinedAt(target.f, model.low, model.high);
  if (hole !== null) throw new RangeError(`${target.words} has no finite value at ${shown(hole)}: give another interval.`);
  return target;
}

function verdictOf(model, { bound, measured, head }) {
  const where = `for s in [${shown(model.low)}, ${shown(model.high)}], ${anchorCount(head)} anchors, computed in ${model.dtype}`;
  return bound !== null
    ? ` The error is at most ${shown(bound)} for every s in [${shown(model.low)}, ${shown(model.high)}], rounding in ${model.dtype} included; ${anchorCount(head)} anchors${anchorCount(head) < model.count ? ", the best known with no more than you allow" : ""}. Largest found here: ${shown(measured.error)}.`
    : ` The largest error found is ${shown(measured.error)}, at s = ${shown(measured.at)}; ${where}.`;
}

/** What the head depends on: all but the anchor in hand. */
function keyOf(model) {
  return JSON.stringify({ ...toState(model), selected: 0 });
}

function plain({ origin, bias, parts }) {
  return { origin, bias, parts: parts.map(({ slopes, offsets, values }) => ({ slopes: [...slopes], offsets: [...offsets], values: [...values] })) };
}

function resized(head, count, near) {
  let now = head;
  while (anchorCount(now) < count) now = withOneMore(now, Math.min(near, anchorCount(now) - 1));
  while (anchorCount(now) > count) now = withOneLess(now, anchorCount(now) - 1);
  return now;
}

export const view = { name: "head", title: "One head", mount };
