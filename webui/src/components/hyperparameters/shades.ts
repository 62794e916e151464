import { isDark } from "../charts/palette";

type Color = [number, number, number];

/**
 * Colours from worst to best, with even steps of lightness and distinct for any kind of colour vision. Each has a
 * contrast of at least 3 to its background: dark blue to amber on light, violet to yellow on dark.
 */
const LIGHT: Color[] = [
  [68, 1, 84],
  [59, 82, 139],
  [24, 117, 124],
  [84, 136, 56],
  [190, 132, 0],
];
const DARK: Color[] = [
  [137, 91, 190],
  [92, 131, 210],
  [61, 171, 168],
  [122, 209, 110],
  [253, 222, 60],
];

function mixed(fraction: number, dark: boolean): Color {
  const stops = dark ? DARK : LIGHT;
  const at = Math.min(1, Math.max(0, fraction)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at));
  const part = at - low;
  return stops[low]!.map((value, index) => Math.round(value + part * (stops[low + 1]![index]! - value))) as Color;
}

export function shade(fraction: number, dark = isDark()): string {
  return `rgb(${mixed(fraction, dark).join(" ")})`;
}

/** Returns the relative luminance as defined by WCAG. */
export function luminance(color: readonly number[]): number {
  const [red, green, blue] = color.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

/** Returns black or white text, whichever has more contrast on the shade. */
export function inkOn(fraction: number, dark = isDark()): string {
  const light = luminance(mixed(fraction, dark)) + 0.05;
  return light / 0.05 > 1.05 / light ? "#000" : "#fff";
}

/** Returns the rank of each value: 1 for the best, 0 for the worst, NaN for a missing one. */
export function goodness(values: readonly number[], smallerIsBetter: boolean): number[] {
  const finite = values.filter(Number.isFinite).sort((a, b) => (smallerIsBetter ? b - a : a - b));
  const rank = new Map<number, number>();
  finite.forEach((value, index) => rank.set(value, finite.length === 1 ? 1 : index / (finite.length - 1)));
  return values.map((value) => rank.get(value) ?? NaN);
}
