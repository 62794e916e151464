/** Returns why a shell ended, in a sentence, from the status of its session. Pure. */
export function endText(status: Record<string, unknown>): string {
  const { code, signal, error } = status;
  if (typeof error === "string") return `The shell has ended: ${error}.`;
  if (typeof signal === "number") return `Signal ${signal} ended the shell.`;
  return code === 0 ? "The shell has ended." : `The shell has ended with exit code ${String(code)}.`;
}
