// @vitest-environment node
import type uPlot from "uplot";
import { expect, it, vi } from "vitest";
import { sparsePath } from "./sparsePath";

it("connects the values of one series between two places, and looks at no other", () => {
  const drawn: [number, number][] = [];
  vi.stubGlobal(
    "Path2D",
    class {
      lineTo = (x: number, y: number) => drawn.push([x, y]);
    },
  );
  const valToPos = vi.fn((value: number, scale: string) => (scale === "x" ? 10.4 * value : 100.6 - value));
  const data = [
    [1, 2, 3, 4, 5],
    [1, undefined, 3, undefined, 5],
    [undefined, 2, undefined, 4, undefined],
  ];
  const path = sparsePath((series) => [[], [0, 2, 4], [1, 3]][series]!);
  path({ data, valToPos } as unknown as uPlot, 1, 0, 2);
  expect(drawn).toEqual([
    [10, 100],
    [31, 98],
  ]);
  expect(valToPos).toHaveBeenCalledTimes(4);
});
