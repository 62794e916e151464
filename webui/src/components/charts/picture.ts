import type uPlot from "uplot";
import type { ChartLine } from "./line";

const PIXELS = 2;

/** Scale of a picture: two pixels for each CSS pixel, or the screen's ratio if it is higher. */
export function pictureFactor(ratio: number): number {
  return Math.max(1, PIXELS / ratio);
}

interface Drawn {
  lines: readonly ChartLine[];
  hidden: ReadonlySet<string>;
}

/** Draws the plot with background, title and legend at double resolution. */
export async function picture(
  draw: (factor: number) => Promise<uPlot>,
  title: string,
  { lines, hidden }: Drawn,
): Promise<Blob> {
  const factor = pictureFactor(devicePixelRatio);
  const ratio = devicePixelRatio * factor;
  const plot = await draw(factor);
  const source = plot.ctx.canvas;
  const look = getComputedStyle(document.documentElement);
  const line = 16 * ratio;
  const shown = lines.filter(({ key }) => !hidden.has(key)).slice(0, 24);
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
  plot.destroy();
  shown.forEach((each, index) => {
    const top = source.height + line * (index + 2.3);
    ctx.strokeStyle = each.stroke.color;
    ctx.lineWidth = 2 * ratio;
    ctx.setLineDash((each.stroke.dash ?? []).map((part) => part * ratio));
    ctx.beginPath();
    ctx.moveTo(8 * ratio, top - 4 * ratio);
    ctx.lineTo(28 * ratio, top - 4 * ratio);
    ctx.stroke();
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
