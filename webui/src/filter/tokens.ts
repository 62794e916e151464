/** A filter cannot be read. `at` is the place in it, from 0. */
export class FilterProblem extends Error {
  constructor(
    message: string,
    readonly at: number,
  ) {
    super(message);
    this.name = "FilterProblem";
  }
}

export interface Token {
  kind: "word" | "text" | "operator" | "open" | "close" | "end";
  value: string;
  at: number;
}

const OPERATORS = ["!=", "<=", ">=", "!~", "=", "<", ">", "~"];
const WORD = /[^\s()"'=<>~!]/;

/** Splits `name ~ digits and hp.lr < 0.1` into words, quoted texts, operators and parentheses. */
export function tokens(source: string): Token[] {
  const found: Token[] = [];
  let at = 0;
  while (at < source.length) {
    const char = source[at]!;
    if (/\s/.test(char)) {
      at += 1;
    } else if (char === "(" || char === ")") {
      found.push({ kind: char === "(" ? "open" : "close", value: char, at });
      at += 1;
    } else if (char === '"' || char === "'") {
      const { value, next } = quoted(source, at);
      found.push({ kind: "text", value, at });
      at = next;
    } else {
      const operator = OPERATORS.find((each) => source.startsWith(each, at));
      if (operator) {
        found.push({ kind: "operator", value: operator, at });
        at += operator.length;
      } else if (WORD.test(char)) {
        const start = at;
        while (at < source.length && WORD.test(source[at]!)) at += 1;
        found.push({ kind: "word", value: source.slice(start, at), at: start });
      } else {
        throw new FilterProblem(`“${char}” is not expected here`, at);
      }
    }
  }
  found.push({ kind: "end", value: "", at: source.length });
  return found;
}

function quoted(source: string, start: number): { value: string; next: number } {
  const mark = source[start]!;
  let value = "";
  for (let at = start + 1; at < source.length; at += 1) {
    const char = source[at]!;
    if (char === mark) return { value, next: at + 1 };
    if (char === "\\" && at + 1 < source.length) {
      at += 1;
      value += source[at];
    } else {
      value += char;
    }
  }
  throw new FilterProblem("this quote is not closed", start);
}

/** Returns a word as it has to be typed: in quotes if it would be read as something else. */
export function asTyped(value: string): string {
  const plain =
    value !== "" &&
    [...value].every((char) => WORD.test(char)) &&
    !/^(and|or|is|not|empty)$/i.test(value) &&
    !value.includes("\\");
  return plain ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;
}
