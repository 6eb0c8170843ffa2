/* A network in words: its layers one after the other, with what features and heads are called, and its certificate. */

import { certificateRows } from "./certificate.js";
import { element } from "../dom.js";
import { follow } from "./layers.js";

const MAX_NAMES = 60;

/** A list of the layers; those of a Repeat stand inside it. */
export function layerList(net) {
  const first = net.layers[0];
  const own = first.weight.shape.length === 3 ? "weights of its own at each position" : "one map for all tokens";
  const items = [item("1", "Embed", `${own}; leaves ${streamText(net.streams[0])}`, net.streams[0].features, null)];
  items.push(...listed(net.layers.slice(1), net.streams[0], "", 2));
  return element("ol", { class: "layers" }, items);
}

function listed(layers, stream, prefix, from) {
  return layers.map((layer, n) => {
    const number = `${prefix}${n + from}`;
    const enters = stream;
    stream = follow(layer, stream);
    if (layer.kind === "Repeat") {
      const inner = element("ol", { class: "layers" }, listed(layer.layers, enters, `${number}.`, 1));
      return element(
        "li",
        {},
        heading(number, "Repeat", `${counted(layer.times, "time")}, with the same weights`),
        inner,
      );
    }
    return item(number, layer.kind, layerText(layer), stream.features, layer.labels ?? null);
  });
}

function item(number, kind, text, features, labels) {
  return element(
    "li",
    {},
    heading(number, kind, text),
    labels ? names("Heads", labels, "head") : null,
    names("Features that leave it", features, "feature"),
  );
}

function heading(number, kind, text) {
  return element("p", { class: "layer" }, element("b", {}, `${number} ${kind}`), " ", text);
}

function names(title, list, word) {
  const shownNames = list
    .slice(0, MAX_NAMES)
    .map((name, k) => element("li", {}, element("span", { class: "place" }, String(k)), name));
  const more = list.length - shownNames.length;
  if (more > 0) shownNames.push(element("li", {}, `and ${more} more`));
  return element(
    "details",
    {},
    element("summary", {}, `${title}: ${counted(list.length, word)}`),
    element("ul", { class: "names" }, shownNames),
  );
}

function layerText(layer) {
  if (layer.kind === "Linear")
    return `${layer.across ? "across tokens" : "on each token"}: ${layer.inputs} to ${counted(layer.outputs, "feature")}`;
  if (layer.kind === "Softmax") return `within a token: ${counted(layer.groups.length, "group")} of features`;
  const parts = [
    counted(layer.heads, "head"),
    `query and key size ${layer.query.shape[1]}`,
    `value size ${layer.value.shape[1]}`,
  ];
  if (layer.heads > 1 && layer.key.shape[0] === 1) parts.push("shared keys");
  if (layer.heads > 1 && layer.value.shape[0] === 1) parts.push("shared values");
  if (layer.mask !== null) parts.push(`mask ${layer.mask}`);
  if (layer.grid !== null) parts.push(`over a grid of ${layer.grid.join(" × ")} anchors`);
  if (layer.skip !== null) parts.push("with skip");
  return parts.join(", ");
}

/** How many tokens of each kind, in words. */
export function streamText(stream) {
  const parts = [stream.inputs === null ? "any number of input tokens" : counted(stream.inputs, "input token")];
  if (stream.registers) parts.push(counted(stream.registers, "register"));
  if (stream.states) parts.push(counted(stream.states, "state"));
  return `${parts.join(", ")}, each of ${counted(stream.features.length, "feature")}`;
}

/** The certificate as a list of terms. */
export function certificateList(certificate) {
  return element(
    "dl",
    { class: "certificate" },
    certificateRows(certificate).flatMap(([label, text]) => [element("dt", {}, label), element("dd", {}, text)]),
  );
}

/** `1 head`, `1,200 heads`. */
export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
