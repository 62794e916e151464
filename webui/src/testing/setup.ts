import "@testing-library/jest-dom/vitest";
import { cleanup, configure } from "@testing-library/react";
import { afterEach, vi } from "vitest";

// A busy machine needs more than the default of one second to render 80 rows.
configure({ asyncUtilTimeout: 5000 });

// APIs that jsdom lacks and browsers have.
if (typeof window !== "undefined") {
  window.matchMedia ??= (media: string) =>
    ({
      media,
      matches: false,
      addEventListener: () => undefined,
      removeEventListener: () => undefined,
      // The older names, which terminals call.
      addListener: () => undefined,
      removeListener: () => undefined,
    }) as unknown as MediaQueryList;
  // Elements have no size in jsdom, but virtual lists need one.
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

// Code that the first render delays is loaded before a test presses something.
if (typeof window !== "undefined") await (await import("@/components/base/preloadChunks")).preloadChunks();

afterEach(() => {
  if (typeof window !== "undefined") cleanup();
  vi.useRealTimers();
});
