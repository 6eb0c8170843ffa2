/* Anchors that can be taken hold of: with the pointer, or with the keys once one of them has the focus. */

import { svg } from "../dom.js";
import { shown } from "../numbers.js";
import { anchorAt, anchorCount, movedSideways, peak } from "./geometry.js";

/** Lets a handle be dragged: begin() returns what is remembered, move(memory, dx, dy) gets distances in pixels. */
function draggable(node, begin, move, end) {
  let held = null;
  node.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    event.stopPropagation();
    node.setPointerCapture(event.pointerId);
    held = { x: event.clientX, y: event.clientY, memory: begin() };
    node.focus({ preventScroll: true });
  });
  node.addEventListener("pointermove", (event) => {
    if (held) move(held.memory, event.clientX - held.x, event.clientY - held.y);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    node.addEventListener(name, () => {
      if (held) end();
      held = null;
    });
  }
}

/** A circle for every anchor, where its weight peaks and as high as its value.

    deed: { current() -> { head, low, high, selected }, select(n), change(n, entries), hold(), release() } */
export function valueHandles(chart, deed) {
  const nodes = [];

  const make = (n) => {
    const node = svg("circle", { class: "handle", r: 8, role: "slider", "aria-orientation": "vertical", "aria-keyshortcuts": "[ ]" });
    draggable(
      node,
      () => {
        deed.select(n);
        deed.hold();
        const { head } = deed.current();
        const { part, k } = anchorAt(head, n);
        return { part, k, origin: head.origin, value: part.values[k] };
      },
      ({ part, k, origin, value }, dx, dy) => {
        const { low, high } = deed.current();
        const by = chart.fromX(dx) - chart.fromX(0);
        const sideways = Math.abs(dx) > 3 ? movedSideways(part, origin, k, by, low, high) : { slope: part.slopes[k], offset: part.offsets[k] };
        deed.change(n, { ...sideways, value: value + chart.fromY(dy) - chart.fromY(0) });
      },
      deed.release,
    );
    node.addEventListener("focus", () => deed.select(n));
    node.addEventListener("keydown", (event) => pressed(event, n));
    return node;
  };

  const pressed = (event, n) => {
    const { head, low, high } = deed.current();
    const { part, k } = anchorAt(head, n);
    const times = event.shiftKey ? 10 : 1;
    const [bottom, top] = chart.bounds.y;
    const up = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    const right = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const other = { "]": n + 1, "[": n - 1 }[event.key];
    if (up) deed.change(n, { value: part.values[k] + (up * times * (top - bottom)) / 100 });
    else if (right) deed.change(n, movedSideways(part, head.origin, k, (right * times * (high - low)) / 100, low, high));
    else if (other !== undefined) nodes[(other + nodes.length) % nodes.length].focus();
    else return;
    event.preventDefault();
  };

  const place = () => {
    const { head, low, high, selected } = deed.current();
    const count = anchorCount(head);
    while (nodes.length > count) nodes.pop().remove();
    while (nodes.length < count) {
      nodes.push(make(nodes.length));
      chart.layer.append(nodes[nodes.length - 1]);
    }
    const { top, bottom } = chart.inner;
    nodes.forEach((node, n) => {
      const { part, k, which } = anchorAt(head, n);
      const at = peak(part, head.origin, k, low, high);
      const y = chart.toY(part.values[k]);
      const shownAt = Math.min(bottom, Math.max(top, y));
      node.setAttribute("cx", chart.toX(at));
      node.setAttribute("cy", shownAt);
      node.setAttribute("class", `handle c${n % 7}${n === selected ? " selected" : ""}${shownAt !== y ? " beyond" : ""}`);
      node.setAttribute("tabindex", n === selected ? 0 : -1);
      node.setAttribute("aria-label", `Anchor ${n + 1} of ${count}${head.parts.length > 1 ? `, softmax ${which + 1}` : ""}: value`);
      node.setAttribute("aria-valuemin", Math.min(chart.bounds.y[0], part.values[k]));
      node.setAttribute("aria-valuemax", Math.max(chart.bounds.y[1], part.values[k]));
      node.setAttribute("aria-valuenow", part.values[k]);
      node.setAttribute("aria-valuetext", `value ${shown(part.values[k])}, slope ${shown(part.slopes[k])}, offset ${shown(part.offsets[k])}; acts most at ${shown(at)}`);
    });
  };
  return { place, focus: (n) => nodes[n]?.focus() };
}

/** Two handles on the line of the anchor in hand: its height at the origin is the offset, its height far out the slope. */
export function scoreHandles(chart, deed) {
  const offset = svg("circle", { class: "handle", r: 8, role: "slider", tabindex: 0, "aria-orientation": "vertical" });
  const slope = svg("rect", { class: "handle", width: 15, height: 15, rx: 3, role: "slider", tabindex: 0, "aria-orientation": "vertical" });
  chart.layer.append(offset, slope);
  const inHand = () => {
    const { head, low, high, selected } = deed.current();
    const { part, k } = anchorAt(head, selected);
    const far = high - head.origin > head.origin - low ? high : low;
    return { n: selected, k, part, origin: head.origin, far, slope: part.slopes[k], offset: part.offsets[k] };
  };
  const begin = () => {
    deed.hold();
    return inHand();
  };
  const rise = (dy) => chart.fromY(dy) - chart.fromY(0);
  draggable(offset, begin, (held, dx, dy) => deed.change(held.n, { offset: held.offset + rise(dy) }), deed.release);
  draggable(slope, begin, (held, dx, dy) => deed.change(held.n, { slope: held.slope + rise(dy) / (held.far - held.origin) }), deed.release);

  const onKeys = (node, entry) => {
    node.addEventListener("keydown", (event) => {
      const up = { ArrowUp: 1, ArrowDown: -1, ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!up) return;
      event.preventDefault();
      const held = inHand();
      const step = (up * (event.shiftKey ? 10 : 1) * (chart.bounds.y[1] - chart.bounds.y[0])) / 200;
      deed.change(held.n, entry === "offset" ? { offset: held.offset + step } : { slope: held.slope + step / Math.abs(held.far - held.origin) });
    });
  };
  onKeys(offset, "offset");
  onKeys(slope, "slope");

  return {
    place() {
      const held = inHand();
      const { top, bottom } = chart.inner;
      const clamped = (y) => Math.min(bottom, Math.max(top, y));
      const inside = held.far > held.origin ? -10 : 10; // pixels: not on the very edge
      offset.setAttribute("cx", chart.toX(held.origin));
      offset.setAttribute("cy", clamped(chart.toY(held.offset)));
      slope.setAttribute("x", chart.toX(held.far) + inside - 7.5);
      slope.setAttribute("y", clamped(chart.toY(held.offset + held.slope * (held.far - held.origin))) - 7.5);
      for (const [node, name, value] of [[offset, "offset", held.offset], [slope, "slope", held.slope]]) {
        node.setAttribute("class", `handle selected c${held.n % 7}`);
        node.setAttribute("aria-label", `Anchor ${held.n + 1}: ${name}`);
        node.setAttribute("aria-valuemin", -2 * Math.abs(value) - 1);
        node.setAttribute("aria-valuemax", 2 * Math.abs(value) + 1);
        node.setAttribute("aria-valuenow", value);
        node.setAttribute("aria-valuetext", shown(value));
      }
    },
  };
}
