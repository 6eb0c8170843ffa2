/* Prompts: the examples that a learner reads, each twice, once with either sign. */

/** The tokens of examples (x ..., y); for a loss of the margin the examples are multiplied by their labels. */
export function prompt(examples, form = "phi(s - y)") {
  const plus = examples.map((row) => {
    const [x, y] = [row.slice(0, -1), row.at(-1)];
    return form === "y phi(y s)" ? [...x.map((entry) => y * entry), y, 1] : [...x, 1, y];
  });
  return [...plus, ...plus.map((row) => row.map((entry) => -entry))];
}
