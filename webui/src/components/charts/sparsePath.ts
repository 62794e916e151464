import uPlot from "uplot";

/** Indices of the values of each series, in order. */
type Filled = readonly (readonly number[])[];

/** Flag of a path by which uPlot clips its bands, as in its own linear paths. */
const BAND_CLIP_FILL = 1;

/**
 * Returns a path builder for straight lines between the values of a series. uPlot's own builder reads every x of the
 * chart; of a hundred lines with different x each has a value at one index in a hundred.
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
 * Returns the range of y, as uPlot chooses it, over the visible values: those of the series that uPlot scales itself,
 * from `least` to `greatest`, and those of the others, for which uPlot would read every x of the chart.
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
