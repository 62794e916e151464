import { expect, test } from "vitest";
import { clock, day, exact } from "./dateTime";

const THEN = Date.UTC(2026, 2, 1, 23, 5, 9);

test("a time is formatted in its zone, which is named", () => {
  expect(exact(THEN, "UTC")).toBe("2026-03-01 23:05:09 UTC");
  expect(exact(THEN, "Asia/Tokyo")).toBe("2026-03-02 08:05:09 Asia/Tokyo");
  expect(clock(THEN, "Asia/Tokyo")).toBe("08:05:09");
  expect(day(THEN, "Asia/Tokyo")).toContain("2026");
});

test("an invalid time gives an empty text", () => {
  expect(exact(NaN, "UTC")).toBe("");
  expect(clock(NaN)).toBe("");
});
