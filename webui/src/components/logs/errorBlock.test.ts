// @vitest-environment node
import { describe, expect, it } from "vitest";
import type { LogLine } from "@/services/logs";
import { lineOf } from "@/testing/samples";
import { errorBlock } from "./errorBlock";

const linesOf = (...texts: (string | [string, Partial<LogLine>])[]) =>
  texts.map((each, index) =>
    typeof each === "string" ? lineOf(index + 1, each) : lineOf(index + 1, each[0], each[1]),
  );

/** Returns the numbers of the marked lines, and that of the exception. */
function found(lines: LogLine[], errorId: number) {
  const block = errorBlock(lines, errorId);
  return block && [[...block.ids], block.exceptionId];
}

describe("the lines of an error", () => {
  it("are its traceback, up to the line with the exception", () => {
    const lines = linesOf(
      "step 1",
      "Traceback (most recent call last):",
      '  File "train.py", line 3, in main',
      "    step()",
      "    ^^^^^^",
      "ValueError: no labels",
      "stopping",
    );
    expect(found(lines, 2)).toEqual([[2, 3, 4, 5, 6], 6]);
  });

  it("include chained exceptions and further lines of the message", () => {
    const lines = linesOf(
      "Traceback (most recent call last):",
      "  File a",
      "KeyError: 'x'",
      "",
      "During handling of the above exception, another exception occurred:",
      "",
      "Traceback (most recent call last):",
      "  File b",
      "RuntimeError: cannot load:",
      "\tmissing keys",
      "stopping",
    );
    expect(found(lines, 1)).toEqual([[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 9]);
  });

  it("begin with the message of a logger before the traceback", () => {
    const lines = linesOf(
      ["it failed", { level: "ERROR" }],
      "Traceback (most recent call last):",
      "  File a",
      "OSError",
    );
    expect(found(lines, 1)).toEqual([[1, 2, 3, 4], 4]);
  });

  it("exclude interleaved lines of other workers, with any prefix and colour", () => {
    const lines = linesOf(
      ["\u001b[31m[rank1]: Traceback (most recent call last):\u001b[0m", { rank: 1 }],
      ["[rank0]: step 5", { rank: 0 }],
      ["[rank1]:   File a", { rank: 1 }],
      ["[rank1]: ValueError: x", { rank: 1 }],
    );
    expect(found(lines, 1)).toEqual([[1, 3, 4], 4]);
  });

  it("are one line without a traceback, all lines of an unfinished one, and none if it is missing", () => {
    expect(found(linesOf(["cannot read", { level: "ERROR" }], "stopping"), 1)).toEqual([[1], 1]);
    expect(found(linesOf("Traceback (most recent call last):", "  File a"), 1)).toEqual([[1, 2], 1]);
    expect(found(linesOf("a"), 9)).toBeNull();
  });
});
