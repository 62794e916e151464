import "@testing-library/jest-dom/vitest";
import { cleanup, configure } from "@testing-library/react";
import { afterEach, vi } from "vitest";

// How long a test waits for what it looks for; a busy machine draws 80 rows in more than the second of the default.
configure({ asyncUtilTimeout: 5000 });

// What jsdom lacks and browsers have.
if (typeof window !== "undefined") {
  window.matchMedia ??= (media: string) =>
    ({
      media,
      matches: false,
      addEventListener: () => undefined,
      removeEventListener: () => undefined,
    }) as unknown as MediaQueryList;
  // Nothing has a size there; lists that draw what is on the screen need one.
  Object.defineProperties(HTMLElement.prototype, {
    clientHeight: { configurable: true, get: () => 600 },
    clientWidth: { configurable: true, get: () => 1200 },
    scrollHeight: {
      configurable: true,
      get(this: HTMLElement) {
        return Math.max(
          600,
          ...[...this.children].map((child) => (child instanceof HTMLElement && parseFloat(child.style.height)) || 0),
        );
      },
    },
  });
  const places = new WeakMap<Element, number>();
  Object.defineProperty(Element.prototype, "scrollTop", {
    configurable: true,
    get(this: Element) {
      return places.get(this) ?? 0;
    },
    set(this: Element, place: number) {
      places.set(this, Math.max(0, Math.min(place, this.scrollHeight - this.clientHeight)));
      setTimeout(() => this.dispatchEvent(new Event("scroll")));
    },
  });
  Element.prototype.scrollTo = function (this: Element, place?: ScrollToOptions | number) {
    this.scrollTop = typeof place === "object" ? (place.top ?? 0) : 0;
  };
  Element.prototype.scrollIntoView ??= () => undefined;
}

// What a first look leaves for later is here by the time that somebody presses something.
if (typeof window !== "undefined") await (await import("@/app/preloadChunks")).preloadChunks();

afterEach(() => {
  if (typeof window !== "undefined") cleanup();
  vi.useRealTimers();
});
