/* The softmax that everything else is made of. */

/** exp(logit) over the sum of all, the largest logit taken away first so that nothing overflows. */
export function softmaxOf(logits) {
  const largest = logits.reduce((most, one) => Math.max(most, one), -Infinity);
  const weights = logits.map((one) => Math.exp(one - largest));
  const sum = weights.reduce((total, one) => total + one, 0);
  return weights.map((one) => one / sum);
}
