import type { Series, XAxis } from "@/services/series";

/** Returns the x axes over which these series have points. Pure. */
export function axesOf(all: readonly Series[]): XAxis[] {
  const axes: XAxis[] = [];
  // Reports without steps have step 0.
  if (all.length === 0 || all.some(({ batches }) => batches.some((step) => step > 0))) axes.push("batches");
  if (all.some(({ epochs }) => epochs?.some(Number.isFinite))) axes.push("epochs");
  return [...axes, "time"];
}
