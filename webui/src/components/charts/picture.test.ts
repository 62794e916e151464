import type uPlot from "uplot";
import { expect, it, vi } from "vitest";
import { picture, pictureFactor } from "./picture";

it("a picture has two pixels for each of the page's, and more if the screen has", () => {
  expect(pictureFactor(1)).toBe(2);
  expect(pictureFactor(1.5) * 1.5).toBe(2);
  expect(pictureFactor(3)).toBe(1);
});

it("a picture is drawn again at its size and names the displayed lines", async () => {
  const texts: string[] = [];
  const canvas = document.createElement("canvas");
  const ctx = new Proxy(
    { fillText: (text: string) => void texts.push(text) },
    { get: (target, name) => (name in target ? target.fillText : () => undefined), set: () => true },
  );
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(ctx as unknown as RenderingContext);
  const sizes: number[] = [];
  vi.spyOn(HTMLCanvasElement.prototype, "toBlob").mockImplementation(function (this: HTMLCanvasElement, done) {
    sizes.push(this.width);
    done(new Blob());
  });
  vi.stubGlobal("devicePixelRatio", 1);
  const draw = async (factor: number) => {
    canvas.width = 400 * factor;
    return { ctx: { canvas }, destroy: () => undefined } as unknown as uPlot;
  };
  const line = (key: string) => ({ key, label: key, x: [1], y: [1], stroke: { color: "#000", dash: undefined } });
  await picture(draw, "loss", { lines: [line("a"), line("b")], hidden: new Set(["a"]) });
  expect(sizes).toEqual([800]);
  expect(texts).toEqual(["loss", "b"]);
});
