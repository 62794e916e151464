import { useMemo } from "react";
import { serverNow } from "@/live/serverClock";

export const SPANS = [
  { title: "15 min", seconds: 900 },
  { title: "1 h", seconds: 3_600 },
  { title: "6 h", seconds: 21_600 },
  { title: "1 d", seconds: 86_400 },
  { title: "7 d", seconds: 604_800 },
] as const;

export interface Span {
  from: string;
  to: string;
}

/**
 * Returns a range whose ends are rounded, so that the query stays the same for a while and its answer can be cached.
 */
export function spanOf(seconds: number, now: number): Span {
  const grain = Math.max(10, seconds / 60) * 1000;
  const to = Math.ceil((now + grain) / grain) * grain;
  return { from: new Date(to - seconds * 1000 - grain).toISOString(), to: new Date(to).toISOString() };
}

/** Returns a range that moves on when `tick` changes. */
export function useSpan(seconds: number, tick: number): Span {
  const grain = Math.floor(tick / (Math.max(10, seconds / 60) * 1000));
  // eslint-disable-next-line react-hooks/exhaustive-deps -- `grain` represents the time
  return useMemo(() => spanOf(seconds, serverNow()), [seconds, grain]);
}
