/** Code that a first look does without; here before somebody presses what needs it. */
export async function fetchTheRest(): Promise<void> {
  const parts = [import("@/components/base/DialogWindow"), import("@/components/base/PopoverPanel"), import("@/components/base/MenuList")];
  // Where the master is away they are asked for again when they are needed.
  await Promise.allSettled(parts);
}
