import { fireEvent, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { drawn } from "@/testing/drawn";
import { TabLinks } from "./TabLinks";

it("the open tab is scrolled into the middle of a bar that is too narrow", () => {
  const tabs = ["one", "two", "three"].map((title) => ({ to: `/${title}`, title }));
  const place = (element: HTMLElement) => tabs.findIndex(({ title }) => title === element.textContent);
  vi.spyOn(HTMLElement.prototype, "offsetLeft", "get").mockImplementation(function (this: HTMLElement) {
    return place(this) * 1_000;
  });
  vi.spyOn(HTMLElement.prototype, "offsetWidth", "get").mockReturnValue(200);
  drawn(<TabLinks label="Parts" tabs={tabs} />, "/three");
  const bar = screen.getByRole("navigation", { name: "Parts" });
  // The setup gives a bar 1200 pixels.
  expect(bar.scrollLeft).toBe(2_000 - 500);
  bar.scrollLeft = 0;
  fireEvent(window, new Event("resize"));
  expect(bar.scrollLeft).toBe(2_000 - 500);
  fireEvent.click(screen.getByText("two"));
  expect(bar.scrollLeft).toBe(1_000 - 500);
});
