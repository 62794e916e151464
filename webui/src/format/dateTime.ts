type Shape = keyof typeof SHAPES;

const SHAPES = {
  moment: {
    locale: "sv-SE",
    options: {
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    },
  },
  clock: { locale: "sv-SE", options: { hour: "2-digit", minute: "2-digit", second: "2-digit" } },
  day: { locale: undefined, options: { year: "numeric", month: "short", day: "numeric" } },
} as const;

/** Formatters by time zone, since creating one is expensive. An undefined time zone is that of this machine. */
const made = new Map<string, Intl.DateTimeFormat>();

function formatted(shape: Shape, then: number, timeZone: string | undefined): string {
  if (!Number.isFinite(then)) return "";
  const key = `${shape} ${timeZone}`;
  let format = made.get(key);
  if (!format)
    made.set(key, (format = new Intl.DateTimeFormat(SHAPES[shape].locale, { ...SHAPES[shape].options, timeZone })));
  return format.format(then);
}

/** `2026-03-01 14:05:09`, followed by the zone if one is given. */
export function exact(then: number, timeZone?: string): string {
  const text = formatted("moment", then, timeZone);
  return text && timeZone ? `${text} ${timeZone}` : text;
}

/** `14:05:09`. */
export function clock(then: number, timeZone?: string): string {
  return formatted("clock", then, timeZone);
}

/** `1 Mar 2026`, in the order of the reader's own language. */
export function day(then: number, timeZone?: string): string {
  return formatted("day", then, timeZone);
}
