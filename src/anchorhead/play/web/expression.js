/* A text in x as a function, with the grammar of the Python parser: names, numbers, + - * / ** ( ) , and comparisons in where.

   Two steps, as in Python: a tree of what is written, then a walk that knows maths and nothing else. No text is ever run.
   A problem is an ExpressionError with the column where it is. */

import { DEFINITIONS, DEMANDS } from "./functions.js";
import { ExpressionError, MAX_DEPTH, tree } from "./syntax.js";
import { NAMED } from "./tables.js";

const MAX_NODES = 2000;
const MAX_EXPONENT = 64;
const CONSTANTS = { pi: Math.PI, e: Math.E };

/** { f, name }: the function x -> f(x) in float64 that a text writes, and its name if it is a named one.

    A bare name such as gelu means gelu(x). */
export function parse(text) {
  const name = text.trim();
  const known = NAMED.get(name);
  const bare = known && known.parameters.every(([, value]) => value !== null);
  const meaning = walk(tree(bare ? `${name}(x)` : text), 0);
  checkSize(meaning);
  return { f: compiled(meaning), name: nameOf(meaning) };
}

/** "gelu" for gelu(x) with its parameters at their defaults; else null. */
function nameOf(node) {
  const known = NAMED.get(node.op);
  const plain = known && node.args[0].op === "variable";
  return plain && known.parameters.every(([, value], k) => node.args[k + 1].data === value) ? node.op : null;
}

/* From what is written to what it means: nodes { op, args, data, varies } */

function node(op, args = [], data = null) {
  return { op, args, data, varies: op === "variable" || args.some((arg) => arg.varies) };
}

/** (a + b) + c is one sum of three, as Python reads it; the same for products. */
function joined(op, a, b) {
  return node(op, a.op === op ? [...a.args, b] : [a, b]);
}

function negative(a) {
  if (a.op === "number") return node("number", [], -a.data + 0);
  return a.op === "neg" ? a.args[0] : node("neg", [a]);
}

function walk(written, depth) {
  if (depth > MAX_DEPTH + 10) throw new ExpressionError(`this is nested more than ${MAX_DEPTH} deep; split it up`, written.at);
  switch (written.kind) {
    case "number": return node("number", [], written.value);
    case "name": return walkName(written);
    case "sign": {
      const inner = walk(written.of, depth + 1);
      return written.op === "-" ? negative(inner) : inner;
    }
    case "binary": return walkChain(written, depth);
    case "call": return walkCall(written, depth);
    case "index": throw new ExpressionError("an entry such as x[0] is not known here: the variable is x", written.at);
    case "compare": throw new ExpressionError("a comparison belongs into where(a < b, value if so, value if not)", written.at);
    default: throw new ExpressionError("a comma outside a function's arguments: give one expression", written.at);
  }
}

function walkName({ name, at }) {
  if (name === "x") return node("variable");
  if (name in CONSTANTS) return node(name);
  if (["True", "False", "None"].includes(name)) throw new ExpressionError(`${name} is not a number`, at);
  if (NAMED.has(name)) throw new ExpressionError(`${name} is a function: write ${NAMED.get(name).signature}`, at);
  throw new ExpressionError(`${name} is not known here: ${meant(name)}the variable is x, the constants pi and e`, at);
}

/** a + b*c - …: down the left side in a loop, as long sums nest there. */
function walkChain(written, depth) {
  const steps = [];
  let left = written;
  for (; left.kind === "binary"; left = left.left) steps.push(left);
  let value = walk(left, depth + 1);
  for (const step of steps.reverse()) {
    const right = walk(step.right, depth + 1);
    if (step.op === "+") value = joined("add", value, right);
    else if (step.op === "-") value = joined("add", value, negative(right));
    else if (step.op === "*") value = joined("mul", value, right);
    else if (step.op === "/") value = node("div", [value, right]);
    else value = powered(value, right, step.right.at);
  }
  return value;
}

function powered(base, exponent, at) {
  if (!exponent.varies) {
    const size = compiled(exponent)(0);
    if (!(Math.abs(size) <= MAX_EXPONENT)) throw new ExpressionError(`the exponent is out of range: exponents from -${MAX_EXPONENT} to ${MAX_EXPONENT} are allowed`, at);
    return Number.isInteger(size) ? node("integer_power", [base], size) : node("power", [base, exponent]);
  }
  if (!base.varies && compiled(base)(0) > 0) return node("power", [base, exponent]);
  throw new ExpressionError("the exponent is not constant: give a number, or write exp(b*log(a)) for a positive base a", at);
}

function walkCall(written, depth) {
  const { of, args, at } = written;
  if (of.kind !== "name") throw new ExpressionError("only a function's name can be called, as in sin(x)", at);
  if (of.name === "where") return walkWhere(written, depth);
  const smallest = of.name === "min" || of.name === "max";
  if (!NAMED.has(of.name) && !smallest) throw new ExpressionError(`${of.name} is not a function here: ${meant(of.name)}min, max, where and the named functions are`, at);
  const given = args.map((arg) => walk(arg, depth + 1));
  if (!smallest) return called(of.name, given, at);
  if (!given.length) throw new ExpressionError(`${of.name} takes one or more arguments, not 0`, at);
  return given.length === 1 ? given[0] : node(of.name, given);
}

function called(name, args, at) {
  const { parameters, signature } = NAMED.get(name);
  const needed = 1 + parameters.filter(([, value]) => value === null).length;
  if (args.length < needed || args.length > 1 + parameters.length) throw new ExpressionError(`${name} with ${args.length} arguments: write ${signature}`, at);
  const rest = parameters.slice(args.length - 1).map(([, value]) => node("number", [], value));
  const all = [...args, ...rest];
  parameters.forEach(([parameter], k) => {
    if (all[k + 1].varies) throw new ExpressionError(`${parameter} of ${name} is not constant: give a number (${signature})`, at);
  });
  const numbers = all.slice(1).map((arg) => compiled(arg)(0));
  if (DEMANDS[name] && !DEMANDS[name][0](...numbers)) {
    throw new ExpressionError(`${parameters.map(([parameter], k) => `${parameter}=${numbers[k]}`).join(", ")} of ${name}: ${DEMANDS[name][1]}`, at);
  }
  return node(name, all);
}

function walkWhere({ args, at }, depth) {
  const [test, then, other] = args;
  if (args.length !== 3 || test.kind !== "compare" || test.rest.length !== 1) throw new ExpressionError("where takes one comparison and two values: where(x < 0, a, b)", at);
  const [relation, right] = test.rest[0];
  const parts = [test.left, right, then, other].map((part) => walk(part, depth + 1));
  if (relation.startsWith(">")) [parts[0], parts[1]] = [parts[1], parts[0]];
  return node("where", parts, relation.replace(">", "<"));
}

function meant(name) {
  const near = [...NAMED.keys(), "min", "max", "where"].map((known) => [distance(name, known), known]).sort((a, b) => a[0] - b[0])[0];
  return near[0] <= Math.max(1, Math.floor(name.length / 3)) ? `did you mean ${near[1]}? ` : "";
}

/** How many letters must be put in, left out or changed. */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, k) => k);
  for (let i = 1; i <= a.length; i += 1) {
    const last = row;
    row = [i];
    for (let j = 1; j <= b.length; j += 1) row.push(Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] !== b[j - 1])));
  }
  return row[b.length];
}

/** Sums, products and quotients that continue to the right do not count as nesting. */
function checkSize(root) {
  const chains = ["add", "mul", "div"];
  const measure = (one) => {
    const below = one.args.map(measure);
    const depths = below.map(([, depth]) => depth + 1);
    if (depths.length && chains.includes(one.op) && chains.includes(one.args[0].op)) depths[0] -= 1;
    return [1 + below.reduce((sum, [size]) => sum + size, 0), Math.max(0, ...depths)];
  };
  const [size, depth] = measure(root);
  if (size > MAX_NODES) throw new ExpressionError(`the expression has ${size} parts: at most ${MAX_NODES} are allowed; split it up`, 0);
  if (depth > MAX_DEPTH) throw new ExpressionError(`the expression is nested ${depth} deep: at most ${MAX_DEPTH} are allowed; split it up`, 0);
}

/* From nodes to functions */

/** As IEEE says and numpy does; JavaScript says NaN for 1 to the power of infinity. */
function toPower(a, b) {
  return a === 1 ? 1 : a ** b;
}

function compiled({ op, args, data }) {
  const parts = args.map(compiled);
  const [a, b, c, d] = parts;
  switch (op) {
    case "number": return () => data;
    case "pi": case "e": return () => CONSTANTS[op];
    case "variable": return (x) => x;
    case "add": return folded(parts, (sum, term) => sum + term);
    case "mul": return folded(parts, (product, factor) => product * factor);
    case "min": return folded(parts, Math.min);
    case "max": return folded(parts, Math.max);
    case "neg": return (x) => -a(x);
    case "div": return (x) => a(x) / b(x);
    case "integer_power": return (x) => toPower(a(x), data);
    case "power": return (x) => toPower(a(x), b(x));
    case "where": return data === "<" ? (x) => (a(x) < b(x) ? c(x) : d(x)) : (x) => (a(x) <= b(x) ? c(x) : d(x));
    default: {
      const parameters = parts.slice(1).map((part) => part(0));
      const define = DEFINITIONS[op];
      return (x) => define(a(x), ...parameters);
    }
  }
}

function folded(parts, join) {
  return (x) => {
    let value = parts[0](x);
    for (let k = 1; k < parts.length; k += 1) value = join(value, parts[k](x));
    return value;
  };
}
