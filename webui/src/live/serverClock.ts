/** The master's clock as seen from here: this machine's may be an hour off, durations must not be. */
let ahead = 0;

/** `now` of an answer that has just come, in milliseconds. */
export function heardTime(serverMillis: number, localMillis: number = Date.now()): void {
  if (Number.isFinite(serverMillis)) ahead = serverMillis - localMillis;
}

export function serverNow(localMillis: number = Date.now()): number {
  return localMillis + ahead;
}

/** By how much this machine's clock differs, in milliseconds. */
export function clockDifference(): number {
  return ahead;
}
