// @vitest-environment node
import { describe, expect, it } from "vitest";
import { completionOf } from "./completion";

describe("completion of a filter", () => {
  it.each([
    ["val", { kind: "column", column: "", word: "val", prefix: "" }],
    ["state = running and hp.l", { kind: "column", column: "", word: "hp.l", prefix: "state = running and " }],
    ["(us", { kind: "column", column: "", word: "us", prefix: "(" }],
    ["state = ", { kind: "value", column: "state", word: "", prefix: "state = " }],
    ["a or tag!~ba", { kind: "value", column: "tags", word: "ba", prefix: "a or tag!~" }],
    ["", null],
    ["state = running ", null],
    ['name = "two wo', null],
  ])("in %j", (source, expected) => expect(completionOf(source)).toEqual(expected));
});
