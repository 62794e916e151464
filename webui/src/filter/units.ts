import { FilterProblem, type Token } from "./tokens";

const SECONDS: Record<string, number> = {
  ...unit(1, "s", "sec", "second", "seconds"),
  ...unit(60, "min", "m", "minute", "minutes"),
  ...unit(3600, "h", "hour", "hours"),
  ...unit(86_400, "d", "day", "days"),
  ...unit(604_800, "w", "week", "weeks"),
};
const BYTES: Record<string, number> = {
  ...unit(1, "B"),
  ...unit(1e3, "KB", "kB"),
  ...unit(1e6, "MB"),
  ...unit(1e9, "GB"),
  ...unit(1e12, "TB"),
};
const AMOUNT = /^(\d+(?:\.\d+)?)([a-z]+)$/i;

function unit(factor: number, ...names: string[]): Record<string, number> {
  return Object.fromEntries(names.map((name) => [name, factor]));
}

/**
 * Returns `3h` in seconds; null for a token that is not a number with a unit. Throws FilterProblem for an unknown unit.
 */
export function secondsOf(token: Token): number | null {
  return amountOf(token, SECONDS);
}

/**
 * Returns `1.5GB` in bytes; null for a token that is not a number with a unit. Throws FilterProblem for an unknown
 * unit.
 */
export function bytesOf(token: Token): number | null {
  return amountOf(token, BYTES);
}

function amountOf({ value, at }: Token, units: Record<string, number>): number | null {
  const [, number = "", name = ""] = AMOUNT.exec(value) ?? [];
  if (number === "") return null;
  if (Object.hasOwn(units, name)) return Number(number) * units[name]!;
  throw new FilterProblem(
    `unknown unit “${name}”; did you mean “${nearest(name, Object.keys(units))}”?`,
    at + number.length,
  );
}

/** Returns the known word with the smallest edit distance. */
function nearest(word: string, known: readonly string[]): string {
  return known.reduce((best, each) => (edits(word, each) < edits(word, best) ? each : best));
}

function edits(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let at = 1; at <= from.length; at += 1) {
    const next = [at];
    for (let place = 1; place <= to.length; place += 1) {
      next.push(
        Math.min(row[place]! + 1, next[place - 1]! + 1, row[place - 1]! + (from[at - 1] === to[place - 1] ? 0 : 1)),
      );
    }
    row = next;
  }
  return row[to.length]!;
}
