export interface XY {
  x: readonly number[];
  y: readonly number[];
}

export interface Band {
  x: number[];
  least: number[];
  greatest: number[];
  mean: number[];
}

/** Returns the value of a line at `at`, interpolated between its points; NaN beyond its ends. */
export function valueAt(line: XY, at: number): number {
  const { x, y } = line;
  if (x.length === 0 || at < x[0]! || at > x.at(-1)!) return NaN;
  let low = 0;
  let high = x.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x[middle]! <= at) low = middle;
    else high = middle;
  }
  if (x[high] === at) return y[high]!;
  if (x[low] === at || high === low) return y[low]!;
  const part = (at - x[low]!) / (x[high]! - x[low]!);
  return y[low]! + part * (y[high]! - y[low]!);
}

/** Returns minimum, maximum and mean of several lines at each x at which one of them has a point. */
export function bandOf(lines: readonly XY[]): Band {
  const clean = lines.map(({ x, y }) => {
    const keep = x.map((_, index) => Number.isFinite(y[index]));
    return { x: x.filter((_, index) => keep[index]), y: y.filter((_, index) => keep[index]) };
  });
  const xs = [...new Set(clean.flatMap((line) => [...line.x]))].sort((a, b) => a - b);
  const band: Band = { x: [], least: [], greatest: [], mean: [] };
  for (const at of xs) {
    const values = clean.map((line) => valueAt(line, at)).filter((value) => !Number.isNaN(value));
    if (values.length === 0) continue;
    band.x.push(at);
    band.least.push(Math.min(...values));
    band.greatest.push(Math.max(...values));
    band.mean.push(values.reduce((sum, value) => sum + value, 0) / values.length);
  }
  return band;
}
