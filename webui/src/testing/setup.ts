import "@testing-library/jest-dom/vitest";
import { cleanup } from "@testing-library/react";
import { afterEach } from "vitest";

// What jsdom lacks and browsers have.
if (typeof window !== "undefined") {
  window.matchMedia ??= (media: string) =>
    ({ media, matches: false, addEventListener: () => undefined, removeEventListener: () => undefined }) as unknown as MediaQueryList;
}

afterEach(cleanup);
