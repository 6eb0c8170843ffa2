/* The first story: one head cuts a line off, with an error of (b - a)/p; H heads over n positions, (b - a)/((n - 2) H). */

import { headStage, scoreStage, several, severalStage, single, sizeStage, weightStage } from "./heads_pictures.js";
import { largestError, pointsToTry } from "./ramp.js";

export const HEADS_STORY = {
  name: "heads",
  title: "Heads cut lines off",
  steps: [
    {
      title: "Anchors",
      text: [
        "A token holds a number s = w·x + t. We want s itself, but cut off at −1 and at 1: a ramp, the bend from which networks are made.",
        "Put p anchors evenly from −1 to 1. Each anchor is a key with a value. Counted in spacings, anchor k has the key (2c·k, −c·k²) and the value k; the token asks with (q, 1), where q is s in the same units.",
        "Key times query is a straight line in s for every anchor. Together the lines are tangents of a parabola: above each anchor, its own line is the highest.",
      ],
      controls: ["anchors", "c", "s"],
      stage: scoreStage,
    },
    {
      title: "Softmax selects",
      text: [
        "Complete the square: 2c·q·k − c·k² = −c·(q − k)² + c·q². The last term is the same for all anchors, and softmax does not see it.",
        "So the weight of an anchor falls with its distance from s: softmax looks up the nearest anchor. c says how sharply; half-way between two anchors they share.",
      ],
      controls: ["anchors", "c", "s"],
      stage: weightStage,
    },
    {
      title: "One head",
      text: [
        "The values are the anchors' own places, so the head puts out the place of the nearest anchors, averaged: s where s is between −1 and 1, and the last anchor beyond. The line is cut off by itself.",
        "The theorem says: with p anchors the error is at most (b − a)/p, apart from a softmax term that sharpness makes small.",
      ],
      controls: ["anchors", "c"],
      stage: headStage,
    },
    {
      title: "Error against p",
      text: [
        "Twice the anchors, half the error: O(1/p). If every token of a sequence of n brings an anchor, it is O(1/n).",
        "Try c: near 2.75 the averaging itself follows the line, and the error is 0.063 spacings, where the theorem allows one. Very sharp heads only pick the nearest anchor: half a spacing.",
      ],
      controls: ["anchors", "c"],
      stage: sizeStage,
    },
    {
      title: "Several heads",
      text: [
        "Nothing needs to be appended: let the n positions of the tokens be the anchors, and H heads share the range. Each head owns n − 2 anchors; its first and last position are dummies with value 0, so it is silent outside of its part. The heads add up.",
        "The error is at most (b − a)/((n − 2)H), again apart from a softmax term: where one head hands over to the next both leak a little, so many heads want a larger c.",
      ],
      controls: ["tokens", "heads", "c"],
      stage: severalStage,
    },
  ],
  python: (settings, step) => (step === 4 ? severalCode(settings) : singleCode(settings)),
  measured: (settings, step) => {
    const made = step === 4 ? several(settings) : single(settings);
    return { ...largestError(made, pointsToTry(made)), theorem: made.theorem };
  },
};

const points = (half) => `s = spacing / 24 * np.arange(-${half}, ${half + 1})`;

function singleCode({ anchors, c }) {
  const made = single({ anchors, c });
  return [
    "import numpy as np",
    "",
    "import anchorhead as ah",
    "",
    `spacing = 2 / ${anchors - 1}`,
    `net = ah.truncated_linear([[1.0]], [0.0], -1, 1, anchors=${anchors}, on=(-2, 2), sharpness=${c} / spacing**2)`,
    points((pointsToTry(made).length - 1) / 2),
    "error = np.abs(net(s[:, None, None])[:, 0, 0] - np.clip(s, -1, 1)).max()",
    "print(error, net.certificate)",
    "",
  ].join("\n");
}

function severalCode({ tokens, heads, c }) {
  const made = several({ tokens, heads, c });
  return [
    "import numpy as np",
    "",
    "import anchorhead as ah",
    "",
    `n, heads = ${tokens}, ${heads}`,
    "spacing = 2 / ((n - 2) * heads)",
    `net = ah.truncated_linear(np.ones((n, 1)), np.zeros(n), -1, 1, heads=heads, on=(-2, 2), sharpness=${c} / spacing**2)`,
    points((pointsToTry(made).length - 1) / 2),
    "x = np.repeat(s[:, None, None], n, axis=1)  # the same s at every token",
    "error = np.abs(net(x)[:, 0, 0] - np.clip(s, -1, 1)).max()",
    "print(error, net.certificate)",
    "",
  ].join("\n");
}
