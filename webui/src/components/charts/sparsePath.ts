import uPlot from "uplot";

/** Places of the values of each series, in order. */
type Filled = readonly (readonly number[])[];

/** Bit of a path's flags by which uPlot clips its bands, as its own linear paths have it. */
const BAND_CLIP_FILL = 1;

/**
 * Straight lines between the values of a series. uPlot's own path looks at every x of the chart; of a hundred lines with
 * other x each has a value at one in a hundred.
 */
export function sparsePath(filled: () => Filled): uPlot.Series.PathBuilder {
  return (plot, series, from, to) => {
    const stroke = new Path2D();
    const xs = plot.data[0];
    const ys = plot.data[series]!;
    for (const place of filled()[series] ?? []) {
      if (place < from || place > to) continue;
      const x = plot.valToPos(xs[place]!, "x", true);
      const y = plot.valToPos(ys[place]!, "y", true);
      stroke.lineTo(Math.round(x), Math.round(y));
    }
    return { stroke, fill: null, clip: null, band: null, flags: BAND_CLIP_FILL };
  };
}

/**
 * The range of y, as uPlot chooses it, over the values in view: those of the series that are scaled by uPlot itself, from
 * `least` to `greatest`, and those of the others, of which it would look at every x of the chart.
 */
export function sparseRange(
  plot: uPlot,
  least: number | null,
  greatest: number | null,
  filled: Filled,
  isLog: boolean,
): uPlot.Range.MinMax {
  const [from, to] = plot.series[0]!.idxs!;
  let low = least ?? Infinity;
  let high = greatest ?? -Infinity;
  plot.series.forEach(({ show, auto }, series) => {
    if (series === 0 || !show || auto) return;
    const ys = plot.data[series]!;
    for (const place of filled[series] ?? []) {
      if (place < from! || place > to!) continue;
      const y = ys[place]!;
      if (y < low) low = y;
      if (y > high) high = y;
    }
  });
  if (low > high) return [null, null];
  return isLog ? uPlot.rangeLog(low, high, 10, true) : uPlot.rangeNum(low, high, 0.1, true);
}
