// @vitest-environment node
import { describe, expect, it } from "vitest";
import { figure } from "./number";
import { escapeControl } from "./escapeControl";

describe("control characters in a text", () => {
  it.each([
    ["turns of writing direction", "file\u202egnp.exe", "file\ufffdgnp.exe"],
    ["isolates", "a\u2066b\u2069", "a\ufffdb\ufffd"],
    ["a NUL", "a\u0000b", "a\u2400b"],
    ["an escape", "a\u001b[31mb", "a\u241b[31mb"],
    ["an escape of eight bits", "a\u009b31mb", "a\ufffd31mb"],
    ["what cannot be seen", "ad\u200bmin\ufeff", "ad\ufffdmin\ufffd"],
  ])("are shown as a sign: %s", (_, text, shown) => expect(escapeControl(text)).toBe(shown));

  it("exclude tabs, line breaks and joined characters", () => {
    for (const text of ["a\tb\r\nc", "👩\u200d🔬 took notes", "می\u200cخواهم", "<b>&amp;"])
      expect(escapeControl(text)).toBe(text);
  });

  it("are shown as signs in values as in names", () => expect(figure("\u202e9.0")).toBe("\ufffd9.0"));
});
