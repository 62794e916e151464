import type { Series, XAxis } from "@/services/series";
import type { TrialMark } from "@/services/trials";
import type { ChartMark } from "../charts/line";

export const NO_MARKS: readonly TrialMark[] = [];

/**
 * Returns the marks at their places on the axis. Over time a pause has a duration. An epoch is interpolated between the
 * nearest points; a mark outside of them has no place. Pure.
 */
export function placed(marks: readonly TrialMark[], x: XAxis, drawn: readonly Series[]): ChartMark[] {
  const epochOf = x === "epochs" ? epochsBetween(drawn) : null;
  return marks.flatMap(({ kind, text, time, until, steps }) => {
    if (x === "time" && kind === "pause")
      return [{ kind, text, x: seconds(time), until: until ? seconds(until) : Infinity }];
    const at = epochOf ? epochOf(steps) : x === "time" ? seconds(time) : steps;
    return at === null ? [] : [{ kind, text, x: at }];
  });
}

const seconds = (time: string) => Date.parse(time) / 1000;

/** Returns the epoch at a step: that of the point there, else interpolated between the adjacent points. */
function epochsBetween(drawn: readonly Series[]): (step: number) => number | null {
  const known = new Map<number, number>();
  for (const { batches, epochs } of drawn)
    batches.forEach((step, index) => Number.isFinite(epochs?.[index] ?? NaN) && known.set(step, epochs![index]!));
  const steps = [...known.keys()].sort((a, b) => a - b);
  return (step) => {
    const after = steps.findIndex((each) => each >= step);
    const right = steps[after];
    const left = steps[after - 1];
    if (right === undefined) return null;
    if (right === step) return known.get(right)!;
    if (left === undefined) return null;
    return known.get(left)! + ((known.get(right)! - known.get(left)!) * (step - left)) / (right - left);
  };
}
