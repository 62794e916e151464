/**
 * An exponential moving average that starts without a bias towards zero; `weight` from 0 (nothing) to below 1. What is not
 * finite stays as it is and does not enter the average.
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
