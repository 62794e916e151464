/** What the master said when it refused, in its own words. */
export interface Diagnostic {
  severity: string;
  code: string;
  message: string;
  path: (string | number)[];
  line: number | null;
  column: number | null;
  hint: string | null;
}

export class Problem extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly diagnostics: Diagnostic[] = [],
  ) {
    super(message);
    this.name = "Problem";
  }

  get isSignedOut(): boolean {
    return this.status === 401;
  }

  get isMissing(): boolean {
    return this.status === 404;
  }
}

/** The answer's own sentence where it has one; else what the status means. */
export function problemOf(status: number, body: unknown): Problem {
  if (typeof body === "object" && body !== null && "error" in body) {
    const error = body.error;
    const text =
      typeof error === "object" && error !== null && "error" in error && typeof error.error === "string"
        ? error.error
        : "the master gave no reason";
    const diagnostics =
      "diagnostics" in body && Array.isArray(body.diagnostics) ? (body.diagnostics as Diagnostic[]) : [];
    return new Problem(status, text, diagnostics);
  }
  return new Problem(status, status === 0 ? "the master does not answer" : `the master answered ${status}`);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const OUTAGE = [0, 502, 503, 504];

/** True if the master did not answer, or a proxy in front of it says so. */
export function isOutage(error: unknown): boolean {
  return !(error instanceof Problem) || OUTAGE.includes(error.status);
}

interface Asked {
  data: unknown;
  error: unknown;
}

/**
 * The error of what was never loaded, or null. What was loaded stays, however old: the note on the connection says that it
 * may be out of date.
 */
export function failureOf(...asked: readonly Asked[]): unknown {
  return asked.find(({ data, error }) => error && data === undefined)?.error ?? null;
}
