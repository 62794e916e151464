import type { XAxis } from "@/services/series";

/**
 * Returns the range from the first to the last point. Around a single point it adds half a minute or one step on each
 * side, where uPlot would choose years.
 */
export function spanOf(least: number, greatest: number, x: XAxis): [number, number] {
  if (least !== greatest) return [least, greatest];
  const half = x === "time" ? 30 : 1;
  return [least - half, least + half];
}
