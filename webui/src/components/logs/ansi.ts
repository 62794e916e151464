import { escapeControl } from "@/format/escapeControl";

export interface Span {
  text: string;
  /** Names of the page's own classes, never a style from the log. */
  looks: string[];
}

const ESCAPE = /\u001b(?:\[([0-?]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]+[0-~]|[0-Z\\^_])/g;
const CODES = /^[0-9;:]*$/;
const COLORS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/**
 * Returns terminal colours as spans. Other terminal sequences are left out, and other control bytes are shown as signs.
 */
export function spansOf(line: string): Span[] {
  const text = lastWritten(line);
  const spans: Span[] = [];
  let look: Look = { color: "", bold: false, faint: false, underline: false };
  let from = 0;
  const add = (to: number) => {
    if (to > from) spans.push({ text: escapeControl(text.slice(from, to)), looks: namesOf(look) });
  };
  for (const match of text.matchAll(ESCAPE)) {
    add(match.index);
    from = match.index + match[0].length;
    if (match[2] === "m" && CODES.test(match[1] ?? "")) look = applied(look, match[1] ?? "");
  }
  add(text.length);
  return spans;
}

/** Returns the last version of a line that was overwritten, such as a progress bar. */
export function lastWritten(line: string): string {
  const trimmed = line.replace(/[\r\n]+$/, "");
  const at = trimmed.lastIndexOf("\r");
  return at < 0 ? trimmed : trimmed.slice(at + 1);
}

interface Look {
  color: string;
  bold: boolean;
  faint: boolean;
  underline: boolean;
}

function applied(look: Look, codes: string): Look {
  let next = { ...look };
  const numbers = codes.split(/[;:]/).map((code) => Number(code || 0));
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at]!;
    if (code === 0) next = { color: "", bold: false, faint: false, underline: false };
    else if (code === 1) next.bold = true;
    else if (code === 2) next.faint = true;
    else if (code === 4) next.underline = true;
    else if (code === 22) next = { ...next, bold: false, faint: false };
    else if (code === 24) next.underline = false;
    else if (code === 39) next.color = "";
    else if (code >= 30 && code <= 37) next.color = COLORS[code - 30]!;
    else if (code >= 90 && code <= 97) next.color = COLORS[code - 90]!;
    else if (code === 38 || code === 48) {
      // The parameters of colours beyond the sixteen must not be read as codes.
      at += numbers[at + 1] === 5 ? 2 : numbers[at + 1] === 2 ? 4 : 0;
    }
  }
  return next;
}

function namesOf({ color, bold, faint, underline }: Look): string[] {
  const names = [color, bold ? "bold" : "", faint ? "faint" : "", underline ? "underline" : ""];
  return names.filter((name) => name !== "");
}
