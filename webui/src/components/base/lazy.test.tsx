import { afterEach, expect, it, vi } from "vitest";
import { lazy, lazyPage } from "./lazy";

afterEach(() => window.history.replaceState(null, "", "/"));

it("fetches the part that the address names before the page is rendered", async () => {
  window.history.replaceState(null, "", "/trials/3/logs");
  const logs = vi.fn(() => Promise.resolve({ default: () => null }));
  const curves = vi.fn(() => Promise.resolve({ default: () => null }));
  const parts = new Map([
    ["logs", lazy(logs)],
    ["curves", lazy(curves)],
  ]);
  await lazyPage(() => Promise.resolve({ Component: () => null, parts })).lazy();
  expect(logs).toHaveBeenCalledOnce();
  expect(curves).not.toHaveBeenCalled();
});
