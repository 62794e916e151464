import type uPlot from "uplot";
import type { ChartLine } from "./line";

/** The data of uPlot: one x for all lines, with null where a line has no point. */
export interface Aligned {
  data: uPlot.AlignedData;
  /** Per line: its columns after x. */
  columns: { line: number; raw: number | null; least: number | null; greatest: number | null }[];
  /** Per column of the data: the indices with a value, in order. */
  filled: readonly (readonly number[])[];
  /** Points that cannot be drawn: not finite, or not positive on a logarithmic axis. */
  lost: { line: number; x: number; value: number }[];
}

/** Aligns lines with different x. Points that cannot be drawn are returned separately, to be shown otherwise. */
export function align(lines: readonly ChartLine[], logX: boolean, logY: boolean): Aligned {
  const tables: { x: number[]; ys: (number | null)[][] }[] = [];
  const columns: Aligned["columns"] = [];
  const lost: Aligned["lost"] = [];
  let column = 1;
  lines.forEach((line, index) => {
    const keep: number[] = [];
    let last = -Infinity;
    line.x.forEach((x, at) => {
      // The later of two points at one x wins.
      if (x === last) keep.pop();
      if (!logX || x > 0) keep.push(at);
      last = x;
    });
    const x = keep.map((at) => line.x[at]!);
    const drawable = (value: number | undefined) =>
      value !== undefined && Number.isFinite(value) && (!logY || value > 0) ? value : null;
    const y = keep.map((at) => drawable(line.y[at]));
    keep.forEach((at, place) => {
      if (y[place] === null) lost.push({ line: index, x: line.x[at]!, value: line.y[at]! });
    });
    const table: (number | null)[][] = [y];
    const own = {
      line: column,
      raw: null as number | null,
      least: null as number | null,
      greatest: null as number | null,
    };
    column += 1;
    const add = (values: readonly number[] | undefined): number | null => {
      if (!values) return null;
      table.push(keep.map((at) => drawable(values[at])));
      column += 1;
      return column - 1;
    };
    own.raw = add(line.raw);
    own.least = add(line.band?.least);
    own.greatest = add(line.band?.greatest);
    columns.push(own);
    tables.push({ x, ys: table });
  });
  return { ...joined(tables), columns, lost };
}

/**
 * Joins the columns over the x of all lines. Like `uPlot.join`, but it records where a column has values: of a hundred
 * lines with different x each has a value at one index in a hundred.
 */
function joined(tables: readonly { x: number[]; ys: (number | null)[][] }[]): Pick<Aligned, "data" | "filled"> {
  // A Float64Array sorts numerically without a comparator.
  const sorted = Float64Array.from(tables.flatMap(({ x }) => x)).sort();
  const all = [...sorted].filter((x, at) => x !== sorted[at - 1]);
  const placeOf = new Map(all.map((x, place) => [x, place]));
  const data: (number | null | undefined)[][] = [all];
  const filled: number[][] = [[]];
  for (const { x, ys } of tables) {
    const places = x.map((each) => placeOf.get(each)!);
    for (const y of ys) {
      const column = new Array<number | null | undefined>(all.length).fill(undefined);
      places.forEach((place, at) => (column[place] = y[at]));
      data.push(column);
      filled.push(places.filter((_, at) => y[at] !== null));
    }
  }
  return { data: data as uPlot.AlignedData, filled };
}
