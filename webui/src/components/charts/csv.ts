import type { Series } from "@/services/series";

/**
 * Returns one row per point: trial, group, metric, step, epoch, time, value. A cell that a spreadsheet would evaluate
 * is quoted.
 */
export function csvOf(all: readonly Series[]): string {
  const lines = ["trial,group,metric,step,epoch,time,value"];
  for (const series of all) {
    series.values.forEach((value, index) => {
      const epoch = series.epochs?.[index];
      lines.push(
        [
          series.trialId,
          cell(series.group),
          cell(series.name),
          series.batches[index],
          epoch === undefined || Number.isNaN(epoch) ? "" : epoch,
          new Date((series.times[index] ?? 0) * 1000).toISOString(),
          value,
        ].join(","),
      );
    });
  }
  return `${lines.join("\r\n")}\r\n`;
}

export function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Starts the download of a file in the browser. */
export function download(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name.replace(/[^\w.-]+/g, "_");
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
