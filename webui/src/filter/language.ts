import { FilterProblem, type Token, tokens } from "./tokens";
import { bytesOf, secondsOf } from "./units";

export type Operator = "=" | "!=" | "<" | "<=" | ">" | ">=" | "contains" | "notContains" | "isEmpty" | "notEmpty";

export interface Condition {
  kind: "field";
  column: string;
  operator: Operator;
  value: string | number | boolean | null;
}

export interface Group {
  kind: "group";
  conjunction: "and" | "or";
  children: Filter[];
}

export type Filter = Condition | Group;

const OPERATORS: Record<string, Operator> = {
  "=": "=",
  "!=": "!=",
  "<": "<",
  "<=": "<=",
  ">": ">",
  ">=": ">=",
  "~": "contains",
  "!~": "notContains",
};

/** Short names of columns. */
const ALIASES: Record<string, string> = {
  tag: "tags",
  label: "tags",
  started: "startTime",
  submitted: "startTime",
  ended: "endTime",
  trials: "numTrials",
  metric: "searcherMetricsVal",
  searcher: "searcherType",
  pool: "resourcePool",
  parent: "forkedFrom",
};

const DATES = new Set(["startTime", "endTime"]);
const WORDS = new Set([
  "id",
  "name",
  "description",
  "tags",
  "state",
  "user",
  "searcherType",
  "searcherMetric",
  "resourcePool",
  "forkedFrom",
]);

/** Returns the column of a name in a filter. */
export function columnOf(name: string): string {
  return Object.hasOwn(ALIASES, name) ? ALIASES[name]! : name;
}

/**
 * Parses the filter language: `state = running and (hp.lr < 0.01 or label ~ base) and validation.loss.min is empty`.
 * Words without an operator are searched in the name. Adjacent conditions must all hold. `started > 2d` means within
 * the last two days. Returns null for an empty line. Throws FilterProblem with the place.
 */
export function parseFilter(source: string, now: number = Date.now()): Filter | null {
  const parser = new Parser(tokens(source), now);
  if (parser.peek().kind === "end") return null;
  const filter = parser.either();
  const rest = parser.peek();
  if (rest.kind !== "end")
    throw new FilterProblem(
      rest.kind === "close" ? "this parenthesis has no opening parenthesis" : `“${rest.value}” was not expected here`,
      rest.at,
    );
  return filter;
}

class Parser {
  private index = 0;

  constructor(
    private readonly list: Token[],
    private readonly now: number,
  ) {}

  peek(ahead = 0): Token {
    return this.list[Math.min(this.index + ahead, this.list.length - 1)]!;
  }

  private take(): Token {
    const token = this.peek();
    this.index += 1;
    return token;
  }

  private isWord(word: string, ahead = 0): boolean {
    const token = this.peek(ahead);
    return token.kind === "word" && token.value.toLowerCase() === word;
  }

  either(): Filter {
    const children = [this.all()];
    while (this.isWord("or")) {
      this.take();
      children.push(this.all());
    }
    return children.length === 1 ? children[0]! : { kind: "group", conjunction: "or", children };
  }

  private all(): Filter {
    const children = [this.one()];
    for (;;) {
      if (this.isWord("and")) this.take();
      else if (this.peek().kind === "end" || this.peek().kind === "close" || this.isWord("or")) break;
      children.push(this.one());
    }
    return children.length === 1 ? children[0]! : { kind: "group", conjunction: "and", children };
  }

  private one(): Filter {
    const token = this.take();
    if (token.kind === "open") {
      const inside = this.either();
      const close = this.take();
      if (close.kind !== "close") throw new FilterProblem("this parenthesis is not closed", token.at);
      return inside;
    }
    if (token.kind !== "word" && token.kind !== "text") {
      throw new FilterProblem(
        token.kind === "end" ? "something is missing here" : `a column or a word was expected, not “${token.value}”`,
        token.at,
      );
    }
    if (this.peek().kind === "operator") return this.condition(token);
    if (this.isWord("is")) return this.emptiness(token);
    return { kind: "field", column: "name", operator: "contains", value: token.value };
  }

  private condition(column: Token): Condition {
    const operator = this.take();
    const value = this.take();
    if (value.kind !== "word" && value.kind !== "text")
      throw new FilterProblem(`a value is missing after “${operator.value}”`, value.at);
    const name = columnOf(column.value);
    return { kind: "field", column: name, operator: OPERATORS[operator.value]!, value: this.valueOf(name, value) };
  }

  private emptiness(column: Token): Condition {
    this.take();
    const not = this.isWord("not");
    if (not) this.take();
    const word = this.take();
    if (word.value.toLowerCase() !== "empty")
      throw new FilterProblem("“is empty” or “is not empty” was expected", word.at);
    const name = columnOf(column.value);
    return { kind: "field", column: name, operator: not ? "notEmpty" : "isEmpty", value: null };
  }

  private valueOf(column: string, token: Token): string | number | boolean {
    if (DATES.has(column)) return this.date(token);
    if (column === "state") return token.value.toUpperCase();
    if (token.kind === "text" || (WORDS.has(column) && column !== "id" && column !== "forkedFrom")) return token.value;
    if (/^(true|false)$/i.test(token.value)) return token.value.toLowerCase() === "true";
    if (column === "duration") return secondsOf(token) ?? this.number(token);
    if (column === "checkpointSize") return bytesOf(token) ?? this.number(token);
    return this.number(token);
  }

  private number(token: Token): string | number {
    const number = Number(token.value);
    return Number.isNaN(number) ? token.value : number;
  }

  private date(token: Token): string {
    const ago = secondsOf(token);
    if (ago !== null) return new Date(this.now - ago * 1000).toISOString();
    const time = Date.parse(token.value);
    if (Number.isNaN(time))
      throw new FilterProblem("a date like 2026-11-21, or an age like 2d or 3h, was expected", token.at);
    return new Date(time).toISOString();
  }
}
