import { toNumber } from "@/format/number";
import { flatten } from "@/format/nested";
import type { SearchSpace } from "./searchSpace";
import type { TrialSummary } from "@/services/trials";

const FEW = 8;
const QUARTERS = [0, 0.25, 0.5, 0.75, 1];

/** One trial as a point: its hyperparameters and its metric. */
export interface Point {
  trialId: number;
  experimentId: number;
  values: Record<string, unknown>;
  /** NaN if the trial has no value yet. */
  metric: number;
}

export interface Tick {
  place: number;
  title: string;
}

export interface Axis {
  name: string;
  kind: "number" | "log" | "words";
  /** All words of an axis of words, in order. */
  words: string[];
  /**
   * The values with their places, from the smallest, if at most eight are possible or, without a search space, occur;
   * else null.
   */
  few: Tick[] | null;
  ticks: Tick[];
  /** Place from 0 at the bottom to 1 at the top; null if a trial has no such value. */
  place: (value: unknown) => number | null;
  label: (fraction: number) => string;
}

/** The value of a trial's metric that is used. */
export type Part = "last" | "min" | "max";

/** Returns the points of the trials, with their last, smallest or largest value. */
export function pointsOf(
  summaries: readonly TrialSummary[],
  metric: { group: string; name: string },
  part: Part,
): Point[] {
  return summaries.map((summary) => {
    const found = summary.metrics.find((each) => each.group === metric.group && each.name === metric.name);
    return {
      trialId: summary.trialId,
      experimentId: summary.experimentId,
      values: flatten(summary.hparams),
      metric: toNumber(found?.[part] ?? found?.last),
    };
  });
}

/** Returns the names whose values differ between the points, in the order of their first appearance. */
export function varying(points: readonly Point[]): string[] {
  const names = [...new Set(points.flatMap((point) => Object.keys(point.values)))];
  return names.filter((name) => new Set(points.map((point) => JSON.stringify(point.values[name]))).size > 1);
}

/**
 * Returns the scale for these values. With a search space: logarithmic for a logarithmic space, one place for each
 * choice. Without one: words at equal distances, numbers linear, or logarithmic if they span more than two powers of
 * ten.
 */
export function axisOf(name: string, values: readonly unknown[], space?: SearchSpace): Axis {
  const present = values.filter((value) => value !== undefined && value !== null);
  if (space?.type === "categorical") return wordAxis(name, present, space.values);
  const numbers = present.filter((value): value is number => typeof value === "number" && Number.isFinite(value));
  if (numbers.length < present.length || numbers.length === 0) return wordAxis(name, present);
  // Values outside of the space (from a fork or rounding) are drawn as well.
  const least = Math.min(...numbers, space?.least ?? Infinity);
  const greatest = Math.max(...numbers, space?.greatest ?? -Infinity);
  const log = least > 0 && (space ? space.log !== null : greatest / least >= 100);
  const to = (value: number) => (log ? Math.log(value) : value);
  const width = to(greatest) - to(least) || 1;
  const placeOf = (value: number) => (to(value) - to(least)) / width;
  const label = (fraction: number) => short(log ? Math.exp(to(least) + fraction * width) : least + fraction * width);
  const few = fewOf(numbers, space)?.map((value) => ({ place: placeOf(value), title: short(value) })) ?? null;
  const powers = log ? powersOf(least, greatest, space?.log ?? 10) : [];
  return {
    name,
    kind: log ? "log" : "number",
    words: [],
    few,
    ticks:
      few ??
      (powers.length > 1
        ? powers.map((value) => ({ place: placeOf(value), title: short(value) }))
        : QUARTERS.map((place) => ({ place, title: label(place) }))),
    place: (value) => (typeof value === "number" && Number.isFinite(value) ? placeOf(value) : null),
    label,
  };
}

/** Returns the values that get a colour step each, in order; null for a continuous scale. */
function fewOf(numbers: readonly number[], space: Exclude<SearchSpace, { type: "categorical" }> | undefined) {
  const distinct = [...new Set(numbers)].sort((a, b) => a - b);
  if (!space || space.count !== null) return distinct.length <= FEW ? distinct : null;
  const count = space.greatest - space.least + 1;
  if (!space.isInteger || count > FEW) return null;
  const possible = Array.from({ length: count }, (_, index) => space.least + index);
  return [...new Set([...possible, ...distinct])].sort((a, b) => a - b);
}

/** Returns the whole powers of the base between minimum and maximum; empty if there are too many. */
function powersOf(least: number, greatest: number, base: number): number[] {
  const exponent = (value: number) => Math.log(value) / Math.log(base);
  const first = Math.ceil(exponent(least) - 1e-9);
  const last = Math.floor(exponent(greatest) + 1e-9);
  if (last - first + 1 > FEW) return [];
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => base ** (first + index));
}

/** Returns the choices in the order of the search space, then other values that occur. */
function wordAxis(name: string, present: readonly unknown[], choices: readonly unknown[] = []): Axis {
  const others = [...new Set(present.map(word))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const words = [...new Set([...choices.map(word), ...others])];
  const last = Math.max(1, words.length - 1);
  const ticks = words.map((title, index) => ({ place: index / last, title }));
  return {
    name,
    kind: "words",
    words,
    few: words.length <= FEW ? ticks : null,
    ticks: ticks.filter((_, index) => index % Math.ceil(words.length / (2 * FEW)) === 0),
    place: (value) => (value === undefined || value === null ? null : words.indexOf(word(value)) / last),
    label: (fraction) => words[Math.round(fraction * last)] ?? "",
  };
}

function word(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}
