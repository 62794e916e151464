import { afterEach, describe, expect, it } from "vitest";
import { followStylePolicy } from "./stylePolicy";

afterEach(() => void Reflect.deleteProperty(document, "createElement"));

describe("the style policy of a terminal", () => {
  it("sets styles of texts as properties, and other attributes as they are", () => {
    followStylePolicy();
    const text = document.createElement("span");
    text.setAttribute("style", "color: rgb(1, 2, 3)");
    text.setAttribute("style", `${text.getAttribute("style")}; width: 4px`);
    text.setAttribute("title", "name");
    expect([text.style.color, text.style.width, text.title]).toEqual(["rgb(1, 2, 3)", "4px", "name"]);
    expect(Object.hasOwn(document.createElement("div"), "setAttribute")).toBe(false);
  });
});
