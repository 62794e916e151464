/** Difference to the master's clock. This machine's clock may be an hour off, but durations must be right. */
let ahead = 0;

/** Stores the master's time, from `now` of an answer that has just arrived, in milliseconds. */
export function heardTime(serverMillis: number, localMillis: number = Date.now()): void {
  if (Number.isFinite(serverMillis)) ahead = serverMillis - localMillis;
}

export function serverNow(localMillis: number = Date.now()): number {
  return localMillis + ahead;
}

/** Returns the difference of this machine's clock in milliseconds. */
export function clockDifference(): number {
  return ahead;
}
