import { useSyncExternalStore } from "react";

/** Preferences of this browser. They are not stored at the master, since devices differ. */
export interface Preferences {
  theme: "system" | "light" | "dark";
  density: "comfortable" | "compact";
  /** `local`, or an IANA name such as `UTC`. */
  timeZone: string;
  /** True if long log lines wrap. */
  wrapLogs: boolean;
  /** True if terminals are read out by a screen reader, which makes them slower. */
  screenReader: boolean;
}

const KEY = "detent.preferences";
const DEFAULTS: Preferences = {
  theme: "system",
  density: "comfortable",
  timeZone: "local",
  wrapLogs: false,
  screenReader: false,
};
const listeners = new Set<() => void>();
let current = read();

function read(): Preferences {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    if (typeof stored !== "object" || stored === null) return DEFAULTS;
    return sane({ ...DEFAULTS, ...stored });
  } catch {
    return DEFAULTS;
  }
}

function sane(value: Preferences): Preferences {
  return {
    theme: ["system", "light", "dark"].includes(value.theme) ? value.theme : DEFAULTS.theme,
    density: ["comfortable", "compact"].includes(value.density) ? value.density : DEFAULTS.density,
    timeZone: isTimeZone(value.timeZone) ? value.timeZone : DEFAULTS.timeZone,
    wrapLogs: value.wrapLogs === true,
    screenReader: value.screenReader === true,
  };
}

export function isTimeZone(name: string): boolean {
  if (name === "local") return true;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

export function setPreferences(change: Partial<Preferences>): void {
  current = sane({ ...current, ...change });
  try {
    localStorage.setItem(KEY, JSON.stringify(current));
  } catch {
    // Without storage the preference holds until the page is closed.
  }
  applyPreferences();
  for (const listener of listeners) listener();
}

export function applyPreferences(): void {
  const root = document.documentElement;
  const dark = window.matchMedia?.("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = current.theme === "system" ? (dark ? "dark" : "light") : current.theme;
  root.dataset.density = current.density;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function usePreferences(): Preferences {
  return useSyncExternalStore(subscribe, () => current);
}

/**
 * Returns the displayed theme, light or dark, whether chosen or from the system. A canvas has to be redrawn when it
 * changes.
 */
export function useShownTheme(): string {
  return useSyncExternalStore(subscribe, () => document.documentElement.dataset.theme ?? "light");
}

/** Returns the time zone for Intl; undefined for the zone of this machine. */
export function zone(preferences: Preferences): string | undefined {
  return preferences.timeZone === "local" ? undefined : preferences.timeZone;
}

export function followSystemTheme(): void {
  window.matchMedia?.("(prefers-color-scheme: dark)").addEventListener("change", () => {
    applyPreferences();
    for (const listener of listeners) listener();
  });
}
