/** Search space of a hyperparameter, from the configuration. */
export type SearchSpace =
  | { type: "categorical"; values: unknown[] }
  /** A range; `log` is the base of a logarithmic scale, `count` the number of grid values. */
  | { type: "range"; least: number; greatest: number; isInteger: boolean; log: number | null; count: number | null };

type Dictionary = Record<string, unknown>;

/** Returns the search spaces of a configuration's hyperparameters, by their dotted names. Pure. */
export function searchSpaces(hyperparameters: unknown): Map<string, SearchSpace> {
  const found = new Map<string, SearchSpace>();
  const walk = (value: unknown, name: string) => {
    if (!isDictionary(value)) return;
    // The section as a whole is a group, also if a hyperparameter has the name "type".
    if (typeof value.type === "string" && name !== "") {
      const space = spaceOf(value);
      if (space) found.set(name, space);
      return;
    }
    for (const [key, inner] of Object.entries(value)) walk(inner, name === "" ? key : `${name}.${key}`);
  };
  walk(hyperparameters, "");
  return found;
}

function isDictionary(value: unknown): value is Dictionary {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function spaceOf({ type, vals, minval, maxval, base, count }: Dictionary): SearchSpace | null {
  if (type === "categorical") return Array.isArray(vals) ? { type, values: vals } : null;
  if (typeof minval !== "number" || typeof maxval !== "number" || minval > maxval) return null;
  const steps = typeof count === "number" ? count : null;
  if (type === "int" || type === "double")
    return { type: "range", least: minval, greatest: maxval, isInteger: type === "int", log: null, count: steps };
  if (type !== "log") return null;
  // Bounds of a logarithmic space are exponents.
  const log = typeof base === "number" && base > 1 ? base : 10;
  return { type: "range", least: log ** minval, greatest: log ** maxval, isInteger: false, log, count: steps };
}
