import { escapeControl } from "./escapeControl";

/** A number in the API's JSON. Values that JSON cannot represent are words. */
export type WireNumber = number | string | null | undefined;

/** Returns NaN for a value that is not a number. */
export function toNumber(value: unknown): number {
  if (typeof value === "number") return value;
  if (value === "Infinity") return Infinity;
  if (value === "-Infinity") return -Infinity;
  return NaN;
}

/** Formats five significant digits, small and large numbers with powers of ten. Words are returned unchanged. */
export function figure(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return escapeControl(value);
  if (typeof value !== "number") return escapeControl(JSON.stringify(value));
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return grouped(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9))
    return value.toExponential(3).replace("-", "−").replace("e−", "e-").replace("e+", "e");
  return String(Number(value.toPrecision(5))).replace("-", "−");
}

const GROUPED = new Intl.NumberFormat("en-US");

/** `1,234,567`. */
export function grouped(value: number): string {
  return GROUPED.format(value).replace("-", "−");
}

export function bytes(size: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let power = 0;
  let rest = size;
  while (rest >= 1000 && power < units.length - 1) {
    rest /= 1000;
    power += 1;
  }
  return `${power === 0 ? rest : rest.toPrecision(3)} ${units[power]}`;
}

export function percent(fraction: number): string {
  return `${Math.floor(Math.min(1, Math.max(0, fraction)) * 100)} %`;
}
