/* Labelled controls. Each returns { element, value } where value can be read and set; setting does not call `changed`. */

import { element, newId } from "./dom.js";

function field(label, control, note = null) {
  const id = control.id || (control.id = newId("field"));
  const hint = note ? element("small", { id: `${id}-note`, class: "note" }, note) : null;
  if (hint) control.setAttribute("aria-describedby", hint.id);
  return element("div", { class: "field" }, element("label", { for: id }, label), control, hint);
}

/** A slider with its value beside it. scale: "log" for sizes; format: the value in words. */
export function slider({ label, min, max, step = 1, value, scale = "linear", format = String, changed, note }) {
  const to = scale === "log" ? Math.log : (v) => v;
  const back = scale === "log" ? Math.exp : (v) => v;
  const stepped = scale === "log" ? (to(max) - to(min)) / 200 : step;
  const input = element("input", { type: "range", min: to(min), max: to(max), step: stepped, id: newId("slider") });
  const reading = element("span", { class: "reading", "aria-hidden": "true" }); // aria-valuetext says the same
  let now = value;
  const tell = () => {
    reading.textContent = format(now);
    input.setAttribute("aria-valuetext", format(now));
  };
  input.value = to(now);
  tell();
  input.addEventListener("input", () => {
    now = scale === "log" ? back(Number(input.value)) : Number(input.value);
    tell();
    changed(now);
  });
  const made = field(label, input, note);
  made.classList.add("slider");
  made.querySelector("label").after(reading);
  return {
    element: made,
    input,
    get value() { return now; },
    set value(given) { now = given; input.value = to(given); tell(); },
    set disabled(off) { input.disabled = off; },
  };
}

/** A field for a number; what is not a number is marked and not handed on. */
export function numberField({ label, value, changed, min = null, max = null, step = "any", note }) {
  const input = element("input", { type: "number", value, min, max, step, inputmode: "decimal", id: newId("number") });
  input.addEventListener("input", () => {
    const given = input.value === "" ? Number.NaN : Number(input.value);
    const good = Number.isFinite(given) && (min === null || given >= min) && (max === null || given <= max);
    input.setAttribute("aria-invalid", String(!good));
    if (good) changed(given);
  });
  return {
    element: field(label, input, note),
    input,
    get value() { return Number(input.value); },
    set value(given) {
      if (document.activeElement !== input) input.value = given;
      input.removeAttribute("aria-invalid");
    },
  };
}

/** A line of text. */
export function textField({ label, value, changed, note, placeholder = "" }) {
  const input = element("input", { type: "text", value, placeholder, spellcheck: "false", autocomplete: "off", autocapitalize: "off", id: newId("text") });
  input.addEventListener("input", () => changed(input.value));
  return {
    element: field(label, input, note),
    input,
    get value() { return input.value; },
    set value(given) { if (document.activeElement !== input) input.value = given; },
  };
}

/** A choice from a list; options are texts, or { value, label, title }. */
export function select({ label, options, value, changed, note }) {
  const entries = options.map((one) => (typeof one === "string" ? { value: one, label: one } : one));
  const input = element(
    "select",
    { id: newId("select") },
    entries.map((one) => element("option", { value: one.value, title: one.title }, one.label)),
  );
  input.value = value;
  input.addEventListener("change", () => changed(input.value));
  return {
    element: field(label, input, note),
    input,
    get value() { return input.value; },
    set value(given) { input.value = given; },
  };
}

/** A few words of which one is chosen, side by side. */
export function choice({ label, options, value, changed, note }) {
  const name = newId("choice");
  const entries = options.map((one) => (typeof one === "string" ? { value: one, label: one } : one));
  const inputs = entries.map((one) =>
    element("input", { type: "radio", name, value: one.value, id: `${name}-${one.value}`, onchange: () => changed(one.value) }),
  );
  const made = element(
    "fieldset",
    { class: "field choice" },
    element("legend", {}, label),
    element("div", { class: "segments" }, entries.map((one, k) => [inputs[k], element("label", { for: inputs[k].id, title: one.title }, one.label)])),
    note ? element("small", { class: "note" }, note) : null,
  );
  const put = (given) => inputs.forEach((input) => (input.checked = input.value === given));
  put(value);
  return {
    element: made,
    get value() { return inputs.find((input) => input.checked)?.value; },
    set value(given) { put(given); },
  };
}

/** A button. */
export function button({ label, pressed, title, kind = "" }) {
  return element("button", { type: "button", class: kind, title, onclick: pressed }, label);
}

/** A part of the page with a heading and a sentence that says what is seen. */
export function panel(title, explanation, ...children) {
  const id = newId("panel");
  return element(
    "section",
    { class: "panel", "aria-labelledby": id },
    element("h2", { id }, title),
    explanation ? element("p", { class: "explanation" }, explanation) : null,
    ...children,
  );
}
