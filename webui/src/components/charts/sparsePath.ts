import type uPlot from "uplot";

/** Bit of a path's flags by which uPlot clips its bands, as its own linear paths have it. */
const BAND_CLIP_FILL = 1;

/**
 * Straight lines between the values of a series. uPlot's own path looks at every x of the chart; of a hundred lines with
 * other x each has a value at one in a hundred. `filled` names the places of the values, in order.
 */
export function sparsePath(filled: (series: number) => readonly number[]): uPlot.Series.PathBuilder {
  return (plot, series, from, to) => {
    const stroke = new Path2D();
    const xs = plot.data[0];
    const ys = plot.data[series]!;
    for (const place of filled(series)) {
      if (place < from || place > to) continue;
      const x = plot.valToPos(xs[place]!, "x", true);
      const y = plot.valToPos(ys[place]!, "y", true);
      stroke.lineTo(Math.round(x), Math.round(y));
    }
    return { stroke, fill: null, clip: null, band: null, flags: BAND_CLIP_FILL };
  };
}
