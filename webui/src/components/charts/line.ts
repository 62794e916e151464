import type { Series, XAxis } from "@/services/series";
import type { Stroke } from "./palette";

/** One line of a chart. */
export interface ChartLine {
  key: string;
  label: string;
  x: number[];
  y: number[];
  stroke: Stroke;
  /** The line before it was smoothed, drawn faintly behind. */
  raw?: number[];
  /** Around the line: least and greatest of several runs. */
  band?: { least: number[]; greatest: number[] };
}

/** Something that happened at a place of the x axis. */
export interface ChartMark {
  x: number;
  kind: string;
  text: string;
  /** Where it was over, of what lasts; infinite while it does. */
  until?: number;
}

/** x of a series, as the axis wants it; points without a place on it are left out by the caller. */
export function xOf(series: Series, axis: XAxis): number[] {
  if (axis === "time") return series.times;
  if (axis === "epochs") return series.epochs ?? [];
  return series.batches;
}

/** Points that have a place on the axis, in its order. */
export function pointsOf(series: Series, axis: XAxis): { x: number[]; y: number[] } {
  const xs = xOf(series, axis);
  const order = xs.map((_, index) => index).filter((index) => Number.isFinite(xs[index]));
  order.sort((a, b) => xs[a]! - xs[b]! || a - b);
  return { x: order.map((index) => xs[index]!), y: order.map((index) => series.values[index]!) };
}
