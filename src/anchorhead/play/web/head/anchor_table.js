/* All weights of a head as numbers that can be edited. */

import { element } from "../dom.js";
import { anchorAt, anchorCount } from "./geometry.js";

const ENTRIES = ["slope", "offset", "value"];

/** { element, show(head, selected) }; change(n, entries), select(n) as for handles. */
export function anchorTable({ change, select }) {
  const body = element("tbody");
  const made = element(
    "table", { class: "anchors" },
    element("caption", { class: "unseen" }, "Slope, offset and value of every anchor"),
    element("thead", {}, element("tr", {}, ["anchor", ...ENTRIES].map((name) => element("th", { scope: "col" }, name)))),
    body,
  );

  const row = (n) => {
    const field = (name) => {
      const input = element("input", { type: "number", step: "any", "aria-label": `${name} of anchor ${n + 1}` });
      input.addEventListener("input", () => {
        const given = input.value === "" ? NaN : Number(input.value);
        input.setAttribute("aria-invalid", String(!Number.isFinite(given)));
        if (Number.isFinite(given)) change(n, { [name]: given });
      });
      input.addEventListener("focus", () => select(n));
      return element("td", {}, input);
    };
    return element("tr", {}, element("th", { scope: "row" }, element("span", { class: `dot c${n % 7}` }), String(n + 1)), ENTRIES.map(field));
  };

  return {
    element: element("div", { class: "scrolling" }, made),
    show(head, selected) {
      const count = anchorCount(head);
      while (body.children.length > count) body.lastChild.remove();
      while (body.children.length < count) body.append(row(body.children.length));
      [...body.children].forEach((line, n) => {
        const { part, k } = anchorAt(head, n);
        line.classList.toggle("selected", n === selected);
        line.querySelectorAll("input").forEach((input, j) => {
          if (input === document.activeElement) return;
          const text = String(Number([part.slopes, part.offsets, part.values][j][k].toPrecision(7)));
          if (input.value !== text) input.value = text;
          input.removeAttribute("aria-invalid");
        });
      });
    },
  };
}
