/* The view of the learner as Python. */

import { python as exactly } from "../numbers.js";
import { SHARPNESS } from "./learner.js";
import { STEPS } from "./settings.js";

/** Python that takes the same path; null without examples. */
export function pythonOf(now) {
  if (!now.examples.length) return null;
  const list = (k) => now.examples.map((one) => exactly(one[k]));
  const call = `net = incontext.gradient_descent(\n    "${now.loss}", steps=${STEPS}, rate=${exactly(now.rate)}, features=1, intercept=True, on=(-1, 1), labels=(-1, 1)\n)`;
  const own = now.sharpness !== SHARPNESS;
  return [
    "import numpy as np",
    "",
    "from anchorhead import incontext",
    ...(own
      ? ["from anchorhead.constructions.learners.learner import Learner", "from anchorhead.constructions.learners.networks import squared_network"]
      : []),
    "",
    `X = np.array([${list(0).join(", ")}])[:, None]`,
    `y = np.array([${list(1).join(", ")}])`,
    call,
    ...(own
      ? [`net = Learner.of(squared_network(net.descent, sharpness=${exactly(now.sharpness)}, dtype="float64"))`]
      : []),
    "prompt = net.prompt(X, y)",
    "path = net(prompt, path=True)  # slope and intercept after 0, 1, ... steps",
    "print(path[-1], net.exact(prompt))",
    ...(own ? [] : ["print(net.certify(prompt))"]),
    "",
  ].join("\n");
}
