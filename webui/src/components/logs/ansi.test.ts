// @vitest-environment node
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { lastWritten, spansOf } from "./ansi";

const plain = (line: string) =>
  spansOf(line)
    .map((span) => span.text)
    .join("");

describe("terminal colours", () => {
  it("become classes of the page", () => {
    expect(spansOf("a \u001b[1;31mred\u001b[0m b")).toEqual([
      { text: "a ", looks: [] },
      { text: "red", looks: ["red", "bold"] },
      { text: " b", looks: [] },
    ]);
  });

  it("beyond the sixteen are left out with their parameters", () => {
    expect(spansOf("\u001b[38;5;1mx\u001b[38;2;1;31;4my")).toEqual([
      { text: "x", looks: [] },
      { text: "y", looks: [] },
    ]);
  });

  it.each([
    ["\u001b]8;;javascript:alert(1)\u0007click\u001b]8;;\u0007", "click"],
    ["\u001b[2J\u001b[Hcleared", "cleared"],
    ["\u001b[?25lbar\u001b[?25h", "bar"],
    ["\u001b(Bplain\u001b[3~", "plain"],
    ["\u001b[>4;1mkeys", "keys"],
    ["bell\u0007 null\u0000", "bell␇ null␀"],
    ["\u202egnp.exe", "\ufffdgnp.exe"],
    ["10 %\r50 %\r100 %\r\n", "100 %"],
    ["<script>alert(1)</script>", "<script>alert(1)</script>"],
  ])("of %j leave %j", (line, shown) => expect(plain(line)).toBe(shown));

  it("leave no control byte, whatever the input", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."\u001b[0;31mK\u0007\r\n\u0000ab]8;\\") }), (line) => {
        expect(plain(line)).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
      }),
    );
  });

  it("keep the last version of an overwritten line", () => expect(lastWritten("a\rb")).toBe("b"));
});
