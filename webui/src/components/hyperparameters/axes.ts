import { toNumber } from "@/format/number";
import { flatten } from "@/format/nested";
import type { TrialSummary } from "@/services/trials";

const FEW = 8;

/** One trial as a point: its hyperparameters and what it reached. */
export interface Point {
  trialId: number;
  experimentId: number;
  values: Record<string, unknown>;
  /** NaN where it has reached nothing yet. */
  metric: number;
}

export interface Axis {
  name: string;
  kind: "number" | "log" | "words";
  /** Of words: all of them, in order. */
  words: string[];
  /** Where there are at most eight values: each with its place, from the least. */
  few: { place: number; title: string }[] | null;
  /** 0 at the bottom to 1 at the top; null where a trial has no such value. */
  place: (value: unknown) => number | null;
  label: (fraction: number) => string;
}

/** What each trial reached at its best. */
export function pointsOf(
  summaries: readonly TrialSummary[],
  metric: { group: string; name: string },
  smallerIsBetter: boolean,
): Point[] {
  return summaries.map((summary) => {
    const found = summary.metrics.find((each) => each.group === metric.group && each.name === metric.name);
    return {
      trialId: summary.trialId,
      experimentId: summary.experimentId,
      values: flatten(summary.hparams),
      metric: toNumber((smallerIsBetter ? found?.min : found?.max) ?? found?.last),
    };
  });
}

/** Names whose values differ between the points, in order of their first appearance. */
export function varying(points: readonly Point[]): string[] {
  const names = [...new Set(points.flatMap((point) => Object.keys(point.values)))];
  return names.filter((name) => new Set(points.map((point) => JSON.stringify(point.values[name]))).size > 1);
}

/** A scale for these values: words beside each other, numbers straight, or by powers where they span more than two. */
export function axisOf(name: string, values: readonly unknown[]): Axis {
  const present = values.filter((value) => value !== undefined && value !== null);
  const numbers = present.filter((value): value is number => typeof value === "number" && Number.isFinite(value));
  if (numbers.length < present.length || numbers.length === 0) return wordAxis(name, present);
  const least = Math.min(...numbers);
  const greatest = Math.max(...numbers);
  const log = least > 0 && greatest / least >= 100;
  const to = (value: number) => (log ? Math.log(value) : value);
  const width = to(greatest) - to(least) || 1;
  const place = (value: unknown) =>
    typeof value === "number" && Number.isFinite(value) ? (to(value) - to(least)) / width : null;
  const distinct = [...new Set(numbers)].sort((a, b) => a - b);
  return {
    name,
    kind: log ? "log" : "number",
    words: [],
    few: distinct.length <= FEW ? distinct.map((value) => ({ place: place(value)!, title: short(value) })) : null,
    place,
    label: (fraction) => short(log ? Math.exp(to(least) + fraction * width) : least + fraction * width),
  };
}

function wordAxis(name: string, present: readonly unknown[]): Axis {
  const words = [...new Set(present.map(word))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const last = Math.max(1, words.length - 1);
  return {
    name,
    kind: "words",
    words,
    few: words.length <= FEW ? words.map((title, index) => ({ place: index / last, title })) : null,
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
