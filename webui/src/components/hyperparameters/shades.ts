/** From dark blue (worst) over teal to yellow (best): even in lightness, told apart with any colour vision. */
const STOPS: [number, number, number][] = [
  [68, 1, 84],
  [59, 82, 139],
  [33, 145, 140],
  [94, 201, 98],
  [253, 200, 37],
];

export function shade(fraction: number): string {
  const at = Math.min(1, Math.max(0, fraction)) * (STOPS.length - 1);
  const low = Math.min(STOPS.length - 2, Math.floor(at));
  const part = at - low;
  const mixed = STOPS[low]!.map((value, index) => Math.round(value + part * (STOPS[low + 1]![index]! - value)));
  return `rgb(${mixed.join(" ")})`;
}

/** Ink that can be read on a shade: black from where it stands out more than white. */
export function inkOn(fraction: number): string {
  return fraction > 0.4 ? "#000" : "#fff";
}

/** How good each value is among all: 1 the best, 0 the worst, NaN for none. */
export function goodness(values: readonly number[], smallerIsBetter: boolean): number[] {
  const finite = values.filter(Number.isFinite).sort((a, b) => (smallerIsBetter ? b - a : a - b));
  const rank = new Map<number, number>();
  finite.forEach((value, index) => rank.set(value, finite.length === 1 ? 1 : index / (finite.length - 1)));
  return values.map((value) => rank.get(value) ?? NaN);
}
