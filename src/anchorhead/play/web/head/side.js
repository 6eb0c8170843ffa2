/* The controls beside the pictures. */

import { button, choice, numberField, panel, select, slider, textField } from "../controls.js";
import { element } from "../dom.js";
import { shown } from "../numbers.js";
import { NAMED } from "../tables.js";
import { MAX_ANCHORS, MIN_ANCHORS, SHARPNESS, usableNames, usualInterval } from "./model.js";
import { sketchPad } from "./sketch.js";

/** { element, show(model, problem) }; set(changes) changes the model, act(name) does what a button says. */
export function headSide(model, set, act) {
  const source = choice({
    label: "Function", value: model.source, changed: (given) => set({ source: given }),
    options: [{ value: "named", label: "Named" }, { value: "expression", label: "Expression" }, { value: "drawn", label: "Drawn" }],
  });
  const name = select({
    label: "Name", value: model.name,
    options: usableNames().map((one) => ({ value: one, label: one, title: NAMED.get(one).description })),
    changed(given) {
      const [low, high] = usualInterval(given);
      set({ name: given, low, high });
    },
  });
  const meaning = element("small", { class: "note" });
  name.element.append(meaning);
  const text = textField({
    label: "Expression in x", value: model.text, changed: (given) => set({ text: given }),
    note: "+ − * / **, pi, e, min, max, where(x < 0, a, b) and all named functions",
  });
  const problem = element("div", { class: "problem", role: "alert" });
  const pad = sketchPad((drawn) => set({ drawn }));
  const ends = ["low", "high"].map((end) => numberField({ label: end === "low" ? "from" : "to", value: model[end], changed: (given) => set({ [end]: given }) }));
  const placement = choice({
    label: "Placement of anchors", value: model.placement, changed: (given) => set({ placement: given }),
    options: [
      { value: "uniform", label: "Uniform", title: "The paper's even spacing" },
      { value: "solved", label: "Solved", title: "Where they serve best" },
      { value: "own", label: "Your own", title: "As you drag them" },
    ],
  });
  const count = slider({ label: "Anchors", min: MIN_ANCHORS, max: MAX_ANCHORS, value: model.count, changed: (given) => set({ count: given }) });
  const c = slider({
    label: "Sharpness c", min: SHARPNESS[0], max: SHARPNESS[1], scale: "log", value: model.c, format: (given) => shown(given),
    changed: (given) => set({ c: Number(given.toPrecision(4)) }),
    note: "of even anchors: softmax of −c (distance / spacing)²",
  });
  const dtype = choice({ label: "Computed in", options: ["float64", "float32", "bfloat16"], value: model.dtype, changed: (given) => set({ dtype: given }) });
  const values = button({ label: "Best values for these keys", title: "Least squares on the values; slopes and offsets stay", pressed: () => act("values") });

  return {
    element: panel(
      "One head", "Choose a function and how its anchors lie; then drag them.",
      source.element, name.element, text.element, pad.element, problem,
      element("div", { class: "row-of", role: "group", "aria-label": "Interval" }, ends.map((end) => end.element)),
      placement.element, count.element, c.element, dtype.element, values,
    ),
    show(now, wrong) {
      source.value = now.source;
      name.element.hidden = now.source !== "named";
      text.element.hidden = now.source !== "expression";
      pad.element.hidden = now.source !== "drawn";
      name.value = now.name;
      meaning.textContent = NAMED.get(now.name).description;
      text.value = now.text;
      text.input.setAttribute("aria-invalid", String(now.source === "expression" && wrong !== null));
      if (now.source === "drawn") pad.show(now.drawn, now.low, now.high);
      ends[0].value = now.low;
      ends[1].value = now.high;
      placement.value = now.placement;
      count.value = now.count;
      c.value = now.c;
      c.element.hidden = now.placement !== "uniform";
      dtype.value = now.dtype;
      problem.replaceChildren(...(wrong === null ? [] : told(wrong, now)));
    },
  };
}

/** What is wrong; under an expression a mark where it is. */
function told(wrong, { source, text }) {
  const words = element("span", {}, wrong.message);
  if (source !== "expression" || wrong.column === undefined) return [words];
  const from = Math.max(0, wrong.column - 24);
  const line = text.slice(from, from + 36).replace(/\s/g, " ");
  return [element("pre", { "aria-hidden": "true" }, `${line}\n${" ".repeat(wrong.column - from)}▲`), words];
}
