import type uPlot from "uplot";
import type { Aligned } from "./alignment";
import type { ChartLine } from "./line";

/** Maximum number of lines that the note names. The others are counted. */
export const MAX_NEAREST = 6;

export interface HoverValue {
  line: ChartLine;
  value: number;
}

/** Returns the lines nearest to the pointer, greatest value first, and the number of other lines with a value. Pure. */
export function nearestValues(
  lines: readonly ChartLine[],
  hidden: ReadonlySet<string>,
  columns: Aligned["columns"],
  data: uPlot.AlignedData,
  index: number,
  down: (value: number) => number,
): { shown: HoverValue[]; more: number } {
  const values = lines.flatMap((line, at): HoverValue[] => {
    if (hidden.has(line.key)) return [];
    const value = valueBefore(data[columns[at]!.line] as (number | null)[] | undefined, index);
    return value === null ? [] : [{ line, value }];
  });
  const shown = values
    .map((each) => ({ each, distance: down(each.value) }))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, MAX_NEAREST)
    .map(({ each }) => each)
    .sort((a, b) => b.value - a.value);
  return { shown, more: values.length - shown.length };
}

function valueBefore(column: (number | null)[] | undefined, index: number): number | null {
  if (!column) return null;
  for (let at = index; at >= 0; at -= 1) {
    const value = column[at];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}

const GAP = 14;
const EDGE = 8;

interface Size {
  width: number;
  height: number;
}

/** Returns a position for the note inside the viewport: right of the pointer, else left of it. Pure. */
export function notePlace(pointer: { x: number; y: number }, note: Size, window: Size): { left: number; top: number } {
  const right = pointer.x + GAP;
  const left = right + note.width + EDGE <= window.width ? right : pointer.x - GAP - note.width;
  const inside = (place: number, size: number, room: number) => Math.max(EDGE, Math.min(place, room - EDGE - size));
  return {
    left: inside(left, note.width, window.width),
    top: inside(pointer.y + GAP, note.height, window.height),
  };
}
