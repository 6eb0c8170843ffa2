/* A pad to draw a function on: with a pen, a finger or the mouse; with keys one point after the other. */

import { Chart } from "../chart.js";
import { element, svg } from "../dom.js";
import { shown, spread } from "../numbers.js";
import { STROKES } from "./model.js";

const STEP = 0.05;

/** { element, show(ys, low, high) }; drawn(ys) is called while something is drawn. */
export function sketchPad(drawn) {
  const chart = new Chart({ label: "Drawing pad: values between −1 and 1", height: 190, margins: { left: 30, bottom: 24 }, y: { ticks: [-1, 0, 1] } });
  chart.svg.classList.add("pad");
  const cursor = svg("circle", {
    class: "handle", r: 8, tabindex: 0, role: "slider", "aria-valuemin": -1, "aria-valuemax": 1,
    "aria-label": "Drawn function: left and right choose a point, up and down move it",
  });
  chart.layer.append(cursor);
  let [ys, low, high, at] = [new Array(STROKES).fill(0), -1, 1, (STROKES - 1) / 2];
  let last = null;

  const place = () => {
    const s = low + (at / (STROKES - 1)) * (high - low);
    cursor.setAttribute("cx", chart.toX(s));
    cursor.setAttribute("cy", chart.toY(ys[at]));
    cursor.setAttribute("aria-valuenow", ys[at]);
    cursor.setAttribute("aria-valuetext", `${shown(ys[at])} at s = ${shown(s)}`);
  };
  const show = () => {
    chart.range([low, high], [-1.1, 1.1]);
    chart.line("drawn", spread(low, high, STROKES), ys, { class: "function" });
    chart.render();
  };
  chart.onrender = place;

  /** Points between two positions of the pen lie on a straight line. */
  const stroke = (event) => {
    const { x, y } = chart.at(event);
    const now = { k: Math.round(Math.min(1, Math.max(0, (x - low) / (high - low))) * (STROKES - 1)), y: Math.min(1, Math.max(-1, y)) };
    const from = last ?? now;
    const steps = Math.max(1, Math.abs(now.k - from.k));
    ys = ys.slice();
    for (let i = 0; i <= steps; i += 1) ys[Math.round(from.k + (i / steps) * (now.k - from.k))] = Number((from.y + (i / steps) * (now.y - from.y)).toFixed(3));
    last = now;
    at = now.k;
    show();
    drawn(ys);
  };
  chart.svg.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    chart.svg.setPointerCapture(event.pointerId);
    last = null;
    stroke(event);
    cursor.focus({ preventScroll: true });
  });
  chart.svg.addEventListener("pointermove", (event) => event.buttons && chart.svg.hasPointerCapture(event.pointerId) && stroke(event));
  cursor.addEventListener("keydown", (event) => {
    const sideways = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const up = { ArrowUp: STEP, ArrowDown: -STEP }[event.key];
    if (sideways === undefined && up === undefined) return;
    event.preventDefault();
    if (sideways) at = Math.min(STROKES - 1, Math.max(0, at + sideways));
    else ys = ys.map((y, k) => (k === at ? Number(Math.min(1, Math.max(-1, y + up)).toFixed(3)) : y));
    show();
    if (up) drawn(ys);
  });
  return {
    element: element("div", {}, chart.element, element("small", { class: "note" }, "Draw from left to right. With keys: ← → choose a point, ↑ ↓ move it.")),
    show(given, from, to) {
      [ys, low, high] = [given, from, to];
      show();
    },
  };
}
