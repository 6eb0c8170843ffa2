/* What is written, as a tree of { kind, at, … }: the grammar and the limits of the Python parser, and nothing of what it means. */

const MAX_LENGTH = 2000;

/** How deep brackets, signs and powers may nest. */
export const MAX_DEPTH = 50;

const TOKEN = /([ \t\r\n]+)|((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|([A-Za-z_][A-Za-z0-9_]*)|(\*\*|<=|>=|\/(?!\/)|[-+*()[\],<>])/y;
const HINTS = {
  "^": "write ** for powers",
  ".": "attributes are not allowed; write sin(x), not np.sin(x)",
  ":": "only expressions are allowed, no lambda, slice or assignment",
  "=": "only <, <=, > and >= compare, and arguments have no keywords",
  "!": "only <, <=, > and >= compare",
  "/": "write / for quotients; whole quotients are not allowed",
  "%": "write the remainder with other functions",
  "|": "write abs(x) for |x|",
  "×": "write * for products",
  "·": "write * for products",
  "π": "write pi",
  "√": "write sqrt(x)",
};
const WORDS = new Set(["lambda", "if", "else", "for", "in", "and", "or", "not", "is", "await", "yield", "async"]);
/** What is wrong with a text, and in which column (from 0). */
export class ExpressionError extends Error {
  constructor(message, column) {
    super(`column ${column + 1}: ${message}`);
    this.column = column;
  }
}

/** The tree of a text. */
export function tree(text) {
  return new Reader(text).read();
}

class Reader {
  constructor(text) {
    this.text = text;
    this.tokens = this.cut();
    this.place = 0;
  }

  cut() {
    const { text } = this;
    if (text.length > MAX_LENGTH) throw new ExpressionError(`a text of ${text.length} characters: at most ${MAX_LENGTH} are allowed; split it up`, MAX_LENGTH);
    if (!text.trim()) throw new ExpressionError("the text is empty: write an expression such as sin(3*x)*exp(x)", 0);
    const tokens = [];
    let [nested, signs, powers] = [0, 0, 0];
    TOKEN.lastIndex = 0;
    while (TOKEN.lastIndex < text.length) {
      const at = TOKEN.lastIndex;
      const match = TOKEN.exec(text);
      if (!match) {
        const sign = String.fromCodePoint(text.codePointAt(at));
        throw new ExpressionError(`“${sign}” is not allowed here: ${HINTS[sign] ?? "names, numbers, + - * / ** ( ) , < <= > >= are allowed"}`, at);
      }
      const [whole, space, number, name, sign] = match;
      if (number) checkNumber(text, number, at);
      if (WORDS.has(name)) throw new ExpressionError(`“${name}” is not maths: for cases write where(x < 0, a, b)`, at);
      // signs in a row, and powers of powers, nest without brackets
      signs = sign === "+" || sign === "-" ? signs + 1 : space ? signs : 0;
      powers = [",", "(", ")"].includes(sign) ? 0 : powers + (sign === "**");
      nested += (sign === "(" || sign === "[") - (sign === ")" || sign === "]");
      if (Math.max(nested, signs, powers) > MAX_DEPTH) throw new ExpressionError(`this is nested more than ${MAX_DEPTH} deep; split it up`, at);
      if (!space) tokens.push({ kind: number ? "number" : name ? "name" : "sign", text: whole, at });
    }
    tokens.push({ kind: "end", text: "", at: text.trimEnd().length });
    return tokens;
  }

  get next() { return this.tokens[this.place]; }

  take(...signs) {
    const token = this.next;
    if (token.kind !== "sign" || !signs.includes(token.text)) return null;
    this.place += 1;
    return token;
  }

  need(sign, opened) {
    if (this.take(sign)) return;
    const { kind, text, at } = this.next;
    const found = kind === "end" ? "the text ends" : `“${text}” stands here`;
    throw new ExpressionError(`this is not an expression: “${sign}” is missing${opened ? `, for the bracket in column ${opened.at + 1}` : ""}; ${found}`, at);
  }

  read() {
    const whole = this.list(null);
    const { kind, text, at } = this.next;
    if (kind !== "end") throw new ExpressionError(`this is not an expression: “${text}” is not expected here${kind === "sign" ? "" : "; write products with *"}`, at);
    return whole;
  }

  /** One expression, or several with commas between: a tuple, which the walk refuses. */
  list(closing) {
    const { at } = this.next;
    const parts = closing && this.next.text === closing ? [] : [this.comparison()];
    let comma = parts.length === 0;
    while (this.take(",")) {
      comma = true;
      if (this.next.kind === "end" || this.next.text === closing) break;
      parts.push(this.comparison());
    }
    return comma ? { kind: "tuple", at, parts } : parts[0];
  }

  comparison() {
    const left = this.sum();
    const rest = [];
    for (let sign = this.take("<", "<=", ">", ">="); sign; sign = this.take("<", "<=", ">", ">=")) rest.push([sign.text, this.sum()]);
    return rest.length ? { kind: "compare", at: left.from ?? left.at, left, rest } : left;
  }

  sum() { return this.chain(["+", "-"], () => this.chain(["*", "/"], () => this.factor())); }

  chain(signs, below) {
    let left = below();
    for (let sign = this.take(...signs); sign; sign = this.take(...signs)) left = { kind: "binary", at: left.from ?? left.at, op: sign.text, left, right: below() };
    return left;
  }

  factor() {
    const sign = this.take("+", "-");
    return sign ? { kind: "sign", at: sign.at, op: sign.text, of: this.factor() } : this.power();
  }

  power() {
    const base = this.primary();
    return this.take("**") ? { kind: "binary", at: base.from ?? base.at, op: "**", left: base, right: this.factor() } : base;
  }

  primary() {
    let found = this.atom();
    for (;;) {
      const bracket = this.take("(", "[");
      if (!bracket) return found;
      const closing = bracket.text === "(" ? ")" : "]";
      const inner = this.list(closing);
      this.need(closing, bracket);
      const args = inner.kind === "tuple" && !inner.closed ? inner.parts : [inner];
      found = { kind: closing === ")" ? "call" : "index", at: found.from ?? found.at, of: found, args };
    }
  }

  atom() {
    const token = this.next;
    this.place += 1;
    if (token.kind === "number") {
      if (/^0+[1-9]\d*$/.test(token.text)) throw new ExpressionError(`${token.text} is not a number: leave out the zeros in front`, token.at);
      return { kind: "number", at: token.at, value: Number(token.text) };
    }
    if (token.kind === "name") return { kind: "name", at: token.at, name: token.text };
    if (token.text === "(") {
      const inner = this.list(")");
      this.need(")", token);
      return { ...inner, from: token.at, closed: true };
    }
    const found = token.kind === "end" ? "the text ends where a value is expected" : `“${token.text}” stands where a value is expected`;
    throw new ExpressionError(`this is not an expression: ${found}`, token.at);
  }
}

function checkNumber(text, number, at) {
  const after = text.charAt(at + number.length);
  if (/[.\p{L}\p{N}_]/u.test(after)) throw new ExpressionError(`${number}${after} is not a number; write products with *`, at);
  if (!Number.isFinite(Number(number))) throw new ExpressionError(`${number.slice(0, 20)} is not finite: numbers up to about 1.8e308 are allowed`, at);
}
