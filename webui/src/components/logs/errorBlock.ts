import type { LogLine } from "@/services/logs";
import { spansOf } from "./ansi";

/** Lines that belong to one error. */
export interface ErrorBlock {
  ids: ReadonlySet<number>;
  /** Line with the exception; the error's own line if there is no traceback. */
  exceptionId: number;
}

const TRACEBACK = /^Traceback \(most recent call last\)/;
const CHAINED = /^(During handling of the above exception|The above exception was the direct cause)/;
/** Prefix that torchrun and deepspeed put before each line of a worker. */
const RANK = /^(\[rank=?\d+\]:? ?)?(\[default\d+\]:)?/;

/** Returns the traceback of the first error with its chained exceptions; null if the line is missing. Pure. */
export function errorBlock(lines: readonly LogLine[], errorId: number): ErrorBlock | null {
  const error = lines.find(({ id }) => id === errorId);
  if (!error) return null;
  // Workers write concurrently, so lines of other ranks are interleaved.
  const own = lines.filter(
    (line) =>
      line.id >= errorId &&
      line.allocationId === error.allocationId &&
      line.containerId === error.containerId &&
      line.rank === error.rank,
  );
  const textAt = (at: number) => textOf(own[at]);
  let last = pastIndented(textAt, 1) - 1;
  let exception = 0;
  // A logger writes its message before the traceback.
  let start = TRACEBACK.test(textAt(0)) ? 0 : last + 1;
  while (TRACEBACK.test(textAt(start))) {
    const raised = pastIndented(textAt, start + 1);
    if (raised >= own.length) {
      last = own.length - 1;
      break;
    }
    exception = raised;
    last = pastIndented(textAt, raised + 1) - 1;
    const next = pastBlank(textAt, last + 1, own.length);
    if (!CHAINED.test(textAt(next))) break;
    start = pastBlank(textAt, next + 1, own.length);
  }
  return { ids: new Set(own.slice(0, last + 1).map(({ id }) => id)), exceptionId: own[exception]!.id };
}

function textOf(line: LogLine | undefined): string {
  if (!line) return "";
  const plain = spansOf(line.text)
    .map(({ text }) => text)
    .join("");
  return plain.replace(RANK, "");
}

/**
 * Returns the index of the first line from here that is not indented. Indented lines are frames of a traceback, or part
 * of a message.
 */
function pastIndented(textAt: (at: number) => string, from: number): number {
  let at = from;
  while (/^\s+\S/.test(textAt(at))) at += 1;
  return at;
}

function pastBlank(textAt: (at: number) => string, from: number, end: number): number {
  let at = from;
  while (at < end && textAt(at).trim() === "") at += 1;
  return at;
}
