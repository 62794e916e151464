// @vitest-environment node
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LogLine, LogPage } from "@/services/logs";
import { EMPTY, MAX_LINES, withAfter, withBefore } from "./window";

const page = (ids: readonly number[], ends: Partial<LogPage> = {}): LogPage => ({
  lines: ids.map((id) => ({ id }) as LogLine),
  atStart: false,
  atEnd: false,
  firstId: ids[0] ?? null,
  lastId: ids.at(-1) ?? null,
  scannedTo: null,
  ...ends,
});

describe("a window into a log", () => {
  it("is ascending without duplicates, whatever pages arrive", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 10 }))),
        (steps) => {
          let window = EMPTY;
          for (const [before, from, count] of steps) {
            const next = page(Array.from({ length: count }, (_, index) => from + index));
            window = before ? withBefore(window, next) : withAfter(window, next);
          }
          const ids = window.lines.map((line) => line.id);
          expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
        },
      ),
    );
  });

  it("holds a maximum of lines; dropped ones can be fetched again", () => {
    const all = withAfter(
      { lines: [], atStart: true, atEnd: false },
      page(
        Array.from({ length: MAX_LINES + 5 }, (_, index) => index + 1),
        { atEnd: true },
      ),
    );
    expect(all.lines).toHaveLength(MAX_LINES);
    expect(all.atStart).toBe(false);
    expect(all.atEnd).toBe(true);
  });
});
