import type uPlot from "uplot";
import type { ChartLine } from "./line";

/** The plot on its ground, with its title above and the names of its lines below. */
export async function picture(plot: uPlot, title: string, lines: readonly ChartLine[]): Promise<Blob> {
  const source = plot.ctx.canvas;
  const ratio = devicePixelRatio;
  const look = getComputedStyle(document.documentElement);
  const line = 16 * ratio;
  const shown = lines.slice(0, 24);
  const canvas = document.createElement("canvas");
  canvas.width = source.width;
  canvas.height = source.height + line * (shown.length + 2);
  const ctx = canvas.getContext("2d")!;
  ctx.fillStyle = look.getPropertyValue("--surface");
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.fillStyle = look.getPropertyValue("--ink");
  ctx.font = `${13 * ratio}px system-ui, sans-serif`;
  ctx.fillText(title, 8 * ratio, line);
  ctx.drawImage(source, 0, line * 1.5);
  shown.forEach((each, index) => {
    const top = source.height + line * (index + 2.3);
    ctx.fillStyle = each.stroke.color;
    ctx.fillRect(8 * ratio, top - 4 * ratio, 20 * ratio, 2 * ratio);
    ctx.fillStyle = look.getPropertyValue("--ink");
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.fillText(each.label, 34 * ratio, top);
  });
  return new Promise((resolve, reject) =>
    canvas.toBlob(
      (blob) => (blob ? resolve(blob) : reject(new Error("the browser could not create the picture"))),
      "image/png",
    ),
  );
}
