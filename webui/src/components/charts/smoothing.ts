/**
 * Returns an exponential moving average without a bias towards zero at its start; `weight` is from 0 (no smoothing) to
 * below 1. Values that are not finite are kept and do not enter the average.
 */
export function smoothed(values: readonly number[], weight: number): number[] {
  if (weight <= 0) return [...values];
  let average = 0;
  let count = 0;
  return values.map((value) => {
    if (!Number.isFinite(value)) return value;
    count += 1;
    average = weight * average + (1 - weight) * value;
    return average / (1 - weight ** count);
  });
}
