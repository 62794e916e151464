import { day } from "./dateTime";

/** `12 s`, `3 min 05 s`, `2 h 07 min`, `3 d 4 h`. */
export function duration(milliseconds: number): string {
  if (!Number.isFinite(milliseconds)) return "";
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${two(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${two(minutes % 60)} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** `just now`, `4 min ago`, `3 h ago`; a date after a week. */
export function ago(then: number, now: number, timeZone?: string): string {
  const seconds = Math.round((now - then) / 1000);
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  if (seconds < 7 * 86_400) return `${Math.floor(seconds / 86_400)} d ago`;
  return day(then, timeZone);
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
