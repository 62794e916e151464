/** The reason of a refusal, in the master's words. */
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

/** Returns the sentence of the answer if it has one, else the meaning of the status. */
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

/** Returns true if the master did not answer, or if a proxy in front of it reports that. */
export function isOutage(error: unknown): boolean {
  return !(error instanceof Problem) || OUTAGE.includes(error.status);
}

interface Asked {
  data: unknown;
  error: unknown;
}

/**
 * Returns the error of a query that never loaded, or null. Loaded data stays, however old: the connection note says
 * that it may be out of date.
 */
export function failureOf(...asked: readonly Asked[]): unknown {
  return asked.find(({ data, error }) => error && data === undefined)?.error ?? null;
}
