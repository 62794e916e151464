import type { XAxis } from "@/services/series";

/** From the first to the last point. Around a single one half a minute or a step each way: years, where the library chooses. */
export function spanOf(least: number, greatest: number, x: XAxis): [number, number] {
  if (least !== greatest) return [least, greatest];
  const half = x === "time" ? 30 : 1;
  return [least - half, least + half];
}
