/**
 * Eight colours that people with any kind of colour vision tell apart (after Okabe and Ito), one set for light and one for
 * dark grounds; beyond eight, dashes tell lines apart too.
 */
const LIGHT = ["#0072b2", "#d55e00", "#007a5a", "#b0468a", "#8a6d00", "#3a7fa8", "#5b4bb7", "#4a4a4a"];
const DARK = ["#56b4e9", "#ff9a3c", "#2fd0a0", "#f090c8", "#f0e442", "#9ad0ec", "#a99bff", "#d0d0d0"];
/** By style, and in each for the first eight lines, the second eight, and so on. No dash stands in two styles. */
const DASHES: (number[] | undefined)[][] = [
  [undefined, [12, 3, 2, 3], [16, 3]],
  [
    [8, 4],
    [2, 3],
    [6, 2, 2, 2, 2, 2],
  ],
  [
    [4, 2],
    [1, 4],
    [10, 6],
  ],
];

export interface Stroke {
  color: string;
  dash: number[] | undefined;
}

export function isDark(): boolean {
  return document.documentElement.dataset.theme === "dark";
}

/** `style`: training is 0 and begins solid, validation is 1 and begins dashed, 2 is anything else. */
export function strokeOf(index: number, style = 0): Stroke {
  const colors = isDark() ? DARK : LIGHT;
  const dashes = DASHES[style % DASHES.length]!;
  return { color: colors[index % colors.length]!, dash: dashes[Math.floor(index / colors.length) % dashes.length] };
}
