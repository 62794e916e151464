/**
 * Eight colours that people with any kind of colour vision tell apart (after Okabe and Ito), one set for light and one for
 * dark grounds; beyond eight, dashes tell lines apart too.
 */
const LIGHT = ["#0072b2", "#d55e00", "#007a5a", "#b0468a", "#8a6d00", "#3a7fa8", "#5b4bb7", "#4a4a4a"];
const DARK = ["#56b4e9", "#ff9a3c", "#2fd0a0", "#f090c8", "#f0e442", "#9ad0ec", "#a99bff", "#d0d0d0"];
const DASHES: (number[] | undefined)[] = [undefined, [8, 4], [2, 3], [10, 3, 2, 3]];

export interface Stroke {
  color: string;
  dash: number[] | undefined;
}

export function isDark(): boolean {
  return document.documentElement.dataset.theme === "dark";
}

/** `style` moves on by a kind of dash: training is solid, validation dashed. */
export function strokeOf(index: number, style = 0): Stroke {
  const colors = isDark() ? DARK : LIGHT;
  return { color: colors[index % colors.length]!, dash: DASHES[(style + Math.floor(index / colors.length)) % DASHES.length] };
}
