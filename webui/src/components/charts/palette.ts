/**
 * Eight colours that are distinct for any kind of colour vision (after Okabe and Ito), one set for light and one for
 * dark backgrounds. Dashes distinguish lines of one colour in a chart.
 */
const LIGHT = ["#0072b2", "#d55e00", "#007a5a", "#b0468a", "#8a6d00", "#3a7fa8", "#5b4bb7", "#4a4a4a"];
const DARK = ["#56b4e9", "#ff9a3c", "#2fd0a0", "#f090c8", "#f0e442", "#9ad0ec", "#a99bff", "#d0d0d0"];
/**
 * Dashes by style and level: for the first line of a colour in a chart, the second, and so on. No dash is in two
 * styles.
 */
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

/**
 * Returns the stroke of a line. The colour depends only on the id of the run, so that a run has one colour on all
 * pages. `style`: 0 is training and begins solid, 1 is validation and begins dashed, 2 is anything else. `level`: see
 * `levelsOf`.
 */
export function strokeOf(id: number, style = 0, level = 0): Stroke {
  const colors = isDark() ? DARK : LIGHT;
  const dashes = DASHES[style % DASHES.length]!;
  return { color: colors[id % colors.length]!, dash: dashes[level % dashes.length] };
}

/** Returns for each id the number of earlier ids with its colour. Pure. */
export function levelsOf(ids: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>();
  const levels = new Map<number, number>();
  for (const id of ids) {
    if (levels.has(id)) continue;
    const level = counts.get(id % LIGHT.length) ?? 0;
    levels.set(id, level);
    counts.set(id % LIGHT.length, level + 1);
  }
  return levels;
}
