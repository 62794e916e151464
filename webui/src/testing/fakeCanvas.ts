import { vi } from "vitest";

/** Records canvas calls; jsdom has no canvas. */
export function fakeCanvas(): void {
  const ctx: unknown = new Proxy({}, { get: () => () => ({ width: 10 }), set: () => true });
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(ctx as RenderingContext);
  class Nothing {
    observe = () => undefined;
    disconnect = () => undefined;
    moveTo = () => undefined;
    lineTo = () => undefined;
    rect = () => undefined;
    arc = () => undefined;
    addPath = () => undefined;
    closePath = () => undefined;
  }
  vi.stubGlobal("ResizeObserver", Nothing);
  vi.stubGlobal("Path2D", Nothing);
}
