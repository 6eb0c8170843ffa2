/* The Python that makes the same head. */

import { python } from "../numbers.js";
import { anchorCount } from "./geometry.js";

/** A call of the library for a head that it ships; else NumPy with the very weights. */
export function codeOf(model, target, { head, bound }) {
  const interval = `(${python(model.low)}, ${python(model.high)})`;
  if (bound !== null) {
    const dtype = model.dtype === "float64" ? "" : `, dtype="${model.dtype}"`;
    return lines(
      "import anchorhead as ah",
      "",
      `head = ah.head(${target.python}, on=${interval}, anchors=${anchorCount(head)}${dtype})`,
      "print(head.certificate)",
    );
  }
  return lines(
    "import numpy as np",
    "",
    ...why(model, target, head, interval),
    `origin, bias = ${python(head.origin)}, ${python(head.bias)}`,
    "parts = [  # slopes, offsets, values of each softmax",
    ...head.parts.flatMap((part) => [
      "    (",
      ...[part.slopes, part.offsets, part.values].map((list) => `        [${list.map(python).join(", ")}],`),
      "    ),",
    ]),
    "]",
    "",
    "",
    "def head(s):",
    `    s = np.asarray(s, dtype=np.${numpyType(model.dtype)})`,
    "    total = np.full(s.shape, bias, dtype=s.dtype)",
    "    for part in parts:",
    "        slopes, offsets, values = (np.array(numbers, dtype=s.dtype) for numbers in part)",
    "        logits = (s - s.dtype.type(origin))[..., None] * slopes + offsets",
    "        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))",
    "        total += (weights / weights.sum(axis=-1, keepdims=True)) @ values",
    "    return total",
    "",
    "",
    `s = np.linspace(${python(model.low)}, ${python(model.high)}, 5)`,
    "print(head(s))",
  );
}

function why(model, target, head, interval) {
  const name = target.python === null ? "a drawn function" : target.words.replace(/\s+/g, " ");
  const said = [`# ${name} on [${python(model.low)}, ${python(model.high)}] with ${anchorCount(head)} anchors, as the playground shows it.`];
  if (model.dtype === "bfloat16") said.push("# Weights are those of bfloat16; NumPy, which does not have it, computes in float32.");
  if (target.python !== null) {
    const placement = model.placement === "uniform" ? ', placement="uniform"' : "";
    said.push("# Weights of one's own carry no proof. With a proven bound, from the library's own search:");
    said.push(`#     ah.head(${target.python}, on=${interval}, anchors=${anchorCount(head)}${placement})`);
  }
  return said;
}

function numpyType(dtype) {
  return dtype === "bfloat16" ? "float32" : dtype;
}

function lines(...all) {
  return `${all.join("\n")}\n`;
}
