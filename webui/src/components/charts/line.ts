import type { Series, XAxis } from "@/services/series";
import type { Stroke } from "./palette";

/** One line of a chart. */
export interface ChartLine {
  key: string;
  label: string;
  x: number[];
  y: number[];
  stroke: Stroke;
  /** The line before smoothing, drawn faintly behind it. */
  raw?: number[];
  /** Minimum and maximum of several runs around the line. */
  band?: { least: number[]; greatest: number[] };
}

/** An event at a place of the x axis. */
export interface ChartMark {
  x: number;
  kind: string;
  text: string;
  /** End of an event with a duration; infinite until it ends. */
  until?: number;
}

/** Returns x of a series for the axis. The caller leaves out points without a place on it. */
export function xOf(series: Series, axis: XAxis): number[] {
  if (axis === "time") return series.times;
  if (axis === "epochs") return series.epochs ?? [];
  return series.batches;
}

/** Returns the points that have a place on the axis, in its order. */
export function pointsOf(series: Series, axis: XAxis): { x: number[]; y: number[] } {
  const xs = xOf(series, axis);
  const order = xs.map((_, index) => index).filter((index) => Number.isFinite(xs[index]));
  order.sort((a, b) => xs[a]! - xs[b]! || a - b);
  return { x: order.map((index) => xs[index]!), y: order.map((index) => series.values[index]!) };
}
