/* Charts in SVG that redraw themselves in the size they have on the page.

   const c = new Chart({ label: "…", x: { label: "s" }, y: { label: "value" }, height: 300 });
   root.append(c.element);
   c.range([-1, 1], [0, 2]);                       what the axes show; { log: true } in x or y for powers of ten
   c.line("f", xs, ys, { class: "function" });      items have a key: the same key again replaces what was drawn
   c.band("proven", xs, low, high, { class: "proven" });
   c.points("found", xs, ys, { class: "head", radius: 3 });
   c.cells("map", values, rows, columns, { x: [a, b], y: [a, b], most: 1 });
   c.legend([{ class: "function", name: "function" }, …]);
   c.tooltip((x) => [["name", "text", "class"], …]); what is told at the pointer
   c.render();                                      all of it, at once

   c.toX, c.toY: data to pixels; c.fromX, c.fromY: back; c.layer: a group for handles, which the chart never touches;
   c.onrender: called after each render, to place what is in the layer. Colours come from the classes in style.css. */

import { element, newId, oncePerFrame, svg } from "./dom.js";
import { powersOfTen, shown, ticks } from "./numbers.js";

const FAR = 1e5; // pixels: beyond, drawing programs lose their way

export class Chart {
  constructor({ label, x = {}, y = {}, height = 280, margins = {} }) {
    this.axes = { x, y };
    this.given = { height, margins: { left: 64, right: 12, top: 10, bottom: 42, ...margins } };
    this.items = new Map();
    this.bounds = { x: [0, 1], y: [0, 1] };
    this.width = 640;
    this.fit();
    this.clip = newId("clip");
    this.onrender = () => {};
    this.clipRect = svg("rect", {});
    this.grid = svg("g", { class: "axes", "aria-hidden": "true" });
    this.body = svg("g", { "clip-path": `url(#${this.clip})` });
    this.layer = svg("g", { class: "layer" });
    this.rule = svg("line", { class: "rule", visibility: "hidden" });
    this.svg = svg(
      "svg", { class: "chart", "aria-label": label },
      svg("defs", {}, svg("clipPath", { id: this.clip }, this.clipRect)), this.grid, this.body, this.rule, this.layer,
    );
    this.key = element("div", { class: "legend", "aria-hidden": "true" });
    this.tip = element("div", { class: "tooltip", hidden: true });
    this.element = element("figure", { class: "chart-frame" }, this.svg, this.tip, this.key);
    this.later = oncePerFrame(() => this.render());
    new ResizeObserver(() => {
      this.fits = false;
      this.later();
    }).observe(this.element);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.hideTip());
  }

  /** What a person who does not see the drawing is told. */
  describe(text) {
    this.svg.setAttribute("aria-label", text);
  }

  /** Sizes are for letters of 16 pixels, and grow with them. Measured only when something changed: it takes a layout. */
  fit() {
    const width = Math.round(this.element?.clientWidth ?? 0);
    if (width > 0) this.width = width;
    this.unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    this.height = Math.round(this.given.height * this.unit);
    this.margins = Object.fromEntries(Object.entries(this.given.margins).map(([side, size]) => [side, size * this.unit]));
    const { left, right, top, bottom } = this.margins;
    this.inner = { left, right: this.width - right, top, bottom: this.height - bottom };
    this.fits = width > 0;
  }

  range(x, y) {
    this.bounds = { x: widened(x, this.axes.x.log), y: widened(y, this.axes.y.log) };
  }

  toX(value) { return placed(value, this.bounds.x, this.inner.left, this.inner.right, this.axes.x.log); }
  toY(value) { return placed(value, this.bounds.y, this.inner.bottom, this.inner.top, this.axes.y.log); }
  fromX(pixel) { return unplaced(pixel, this.bounds.x, this.inner.left, this.inner.right, this.axes.x.log); }
  fromY(pixel) { return unplaced(pixel, this.bounds.y, this.inner.bottom, this.inner.top, this.axes.y.log); }

  /** Where a pointer is, in data. */
  at(event) {
    const box = this.svg.getBoundingClientRect();
    return { x: this.fromX(event.clientX - box.left), y: this.fromY(event.clientY - box.top) };
  }

  item(key, tag, options, draw) {
    let found = this.items.get(key);
    if (!found || found.node.tagName !== tag) {
      found?.node.remove();
      found = { node: svg(tag) };
      this.items.set(key, found);
      this.body.append(found.node);
    }
    found.draw = draw;
    found.node.setAttribute("class", options.class ?? "");
  }

  line(key, xs, ys, options = {}) {
    this.item(key, "path", { class: `line ${options.class ?? ""}` }, (node) => node.setAttribute("d", this.path(xs, ys)));
  }

  band(key, xs, low, high, options = {}) {
    this.item(key, "path", { class: `band ${options.class ?? ""}` }, (node) => {
      const back = this.path(Array.from(xs).reverse(), Array.from(high).reverse()).replace("M", "L");
      node.setAttribute("d", `${this.path(xs, low)}${back}Z`);
    });
  }

  points(key, xs, ys, options = {}) {
    this.item(key, "g", { class: `points ${options.class ?? ""}` }, (node) => {
      node.replaceChildren(
        ...Array.from(xs, (x, k) => svg("circle", { cx: this.toX(x), cy: this.toY(ys[k]), r: options.radius ?? 4 })),
      );
    });
  }

  text(key, x, y, words, options = {}) {
    this.item(key, "text", { class: `words ${options.class ?? ""}` }, (node) => {
      node.setAttribute("x", this.toX(x) + (options.dx ?? 0));
      node.setAttribute("y", this.toY(y) + (options.dy ?? 0));
      node.setAttribute("text-anchor", options.anchor ?? "start");
      node.textContent = words;
    });
  }

  /** A picture made elsewhere (heatmap.js) that fills a rectangle of data. */
  image(key, address, x, y) {
    this.item(key, "image", { class: "cells" }, (node) => {
      const [left, right] = [this.toX(x[0]), this.toX(x[1])];
      const [top, bottom] = [this.toY(y[1]), this.toY(y[0])];
      for (const [name, value] of Object.entries({ x: left, y: top, width: right - left, height: bottom - top })) node.setAttribute(name, value);
      node.setAttribute("preserveAspectRatio", "none");
      node.setAttribute("href", address);
    });
  }

  remove(key) {
    this.items.get(key)?.node.remove();
    this.items.delete(key);
  }

  /** Keys of items that begin with a word. */
  keys(word) {
    return [...this.items.keys()].filter((key) => key.startsWith(word));
  }

  legend(entries) {
    this.key.replaceChildren(
      ...entries.map((one) => element("span", { class: "entry" }, swatch(one), one.name)),
    );
  }

  tooltip(tell) {
    this.tell = tell;
  }

  path(xs, ys) {
    let text = "";
    let pen = "M";
    for (let k = 0; k < xs.length; k += 1) {
      const y = this.toY(ys[k]);
      if (Number.isFinite(y)) {
        text += `${pen}${this.toX(xs[k]).toFixed(2)} ${Math.min(FAR, Math.max(-FAR, y)).toFixed(2)}`;
        pen = "L";
      } else {
        pen = "M";
      }
    }
    return text;
  }

  render() {
    if (!this.fits) this.fit();
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    this.svg.setAttribute("role", this.layer.childNodes.length ? "group" : "img");
    const { left, right, top, bottom } = this.inner;
    for (const [name, value] of Object.entries({ x: left, y: top, width: Math.max(0, right - left), height: bottom - top })) this.clipRect.setAttribute(name, value);
    this.renderAxes();
    for (const { node, draw } of this.items.values()) draw(node);
    this.onrender();
  }

  renderAxes() {
    const { left, right, top, bottom } = this.inner;
    const { x, y } = this.axes;
    const { unit } = this;
    const parts = [];
    const places = (axis, bounds, room) => axis.ticks ?? (axis.log ? powersOfTen(...bounds, room) : ticks(...bounds, room));
    for (const value of places(x, this.bounds.x, Math.max(2, (right - left) / (80 * unit)))) {
      const at = this.toX(value);
      parts.push(svg("line", { x1: at, x2: at, y1: top, y2: bottom }), svg("text", { x: at, y: bottom + 16 * unit, "text-anchor": "middle" }, (x.format ?? shown)(value)));
    }
    for (const value of places(y, this.bounds.y, Math.max(2, (bottom - top) / (44 * unit)))) {
      const at = this.toY(value);
      parts.push(svg("line", { x1: left, x2: right, y1: at, y2: at }), svg("text", { x: left - 8 * unit, y: at, "text-anchor": "end", "dominant-baseline": "central" }, (y.format ?? shown)(value)));
    }
    if (x.label) parts.push(svg("text", { class: "label", x: (left + right) / 2, y: this.height - 6 * unit, "text-anchor": "middle" }, x.label));
    if (y.label) parts.push(svg("text", { class: "label", x: 12 * unit, y: (top + bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 ${12 * unit} ${(top + bottom) / 2})` }, y.label));
    this.grid.replaceChildren(...parts);
  }

  point(event) {
    if (!this.tell) return;
    const { x, y } = this.at(event);
    const { left, right, top, bottom } = this.inner;
    const pixel = this.toX(x);
    if (!(pixel >= left && pixel <= right)) return this.hideTip();
    const rows = this.tell(x, y);
    if (!rows || !rows.length) return this.hideTip();
    for (const [name, value] of Object.entries({ x1: pixel, x2: pixel, y1: top, y2: bottom, visibility: "visible" })) this.rule.setAttribute(name, value);
    this.tip.replaceChildren(...rows.map(([name, text, kind]) => element("div", { class: `row ${kind ?? ""}` }, element("span", {}, name), element("b", {}, text))));
    this.tip.hidden = false;
    const side = pixel > (left + right) / 2;
    this.tip.style.left = side ? "" : `${pixel + 12}px`;
    this.tip.style.right = side ? `${this.width - pixel + 12}px` : "";
    return undefined;
  }

  hideTip() {
    this.tip.hidden = true;
    this.rule.setAttribute("visibility", "hidden");
  }
}

function swatch(one) {
  const shape = one.shape ?? "line";
  const mark = {
    line: () => svg("path", { class: `line ${one.class}`, d: "M1 6H21" }),
    band: () => svg("path", { class: `band ${one.class}`, d: "M1 2H21V10H1Z" }),
    points: () => svg("g", { class: `points ${one.class}` }, svg("circle", { cx: 11, cy: 6, r: 4 })),
  }[shape]();
  return svg("svg", { width: 22, height: 12, viewBox: "0 0 22 12" }, mark);
}

function widened([low, high], log) {
  if (low < high) return [low, high];
  return log ? [low / 2, high * 2] : [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
}

function placed(value, [low, high], from, to, log) {
  const share = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return from + share * (to - from);
}

function unplaced(pixel, [low, high], from, to, log) {
  const share = (pixel - from) / (to - from);
  return log ? low * (high / low) ** share : low + share * (high - low);
}
