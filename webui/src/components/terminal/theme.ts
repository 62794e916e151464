import type { ITheme } from "@xterm/xterm";

/** Lowest contrast between text and ground: colours of programs that have less are made darker or lighter. */
export const MIN_CONTRAST = 4.5;

/** Returns the colours of a terminal, from those of the displayed theme. */
export function terminalTheme(): ITheme {
  const token = tokens();
  return {
    background: token("--surface"),
    foreground: token("--ink"),
    cursor: token("--accent"),
    cursorAccent: token("--surface"),
    selectionBackground: token("--accent-soft"),
    selectionForeground: token("--ink"),
    red: token("--bad"),
    green: token("--good"),
    yellow: token("--waiting"),
    blue: token("--accent"),
    cyan: token("--live"),
  };
}

/** Returns the font of a terminal, which measures its texts on a canvas, where no variable is known. */
export function terminalFont(): string {
  return tokens()("--mono");
}

function tokens(): (name: string) => string {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(name).trim();
}
