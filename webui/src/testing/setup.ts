import "@testing-library/jest-dom/vitest";
import { cleanup } from "@testing-library/react";
import { afterEach, vi } from "vitest";

// What jsdom lacks and browsers have.
if (typeof window !== "undefined") {
  window.matchMedia ??= (media: string) =>
    ({ media, matches: false, addEventListener: () => undefined, removeEventListener: () => undefined }) as unknown as MediaQueryList;
  // Nothing has a size there; lists that draw what is on the screen need one of which something is.
  Object.defineProperties(HTMLElement.prototype, {
    offsetHeight: { configurable: true, get: () => 600 },
    offsetWidth: { configurable: true, get: () => 1200 },
  });
  Element.prototype.scrollIntoView ??= () => undefined;
  Element.prototype.scrollTo = function (this: Element, place?: ScrollToOptions | number) {
    this.scrollTop = typeof place === "object" ? (place.top ?? 0) : 0;
    this.dispatchEvent(new Event("scroll"));
  };
}

afterEach(() => {
  if (typeof window !== "undefined") cleanup();
  vi.useRealTimers();
});
