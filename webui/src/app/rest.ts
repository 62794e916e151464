/** Code that a first look does without; here before somebody presses what needs it. */
export async function fetchTheRest(): Promise<void> {
  await Promise.all([import("@/components/base/DialogWindow"), import("@/components/base/PopoverPanel"), import("@/components/base/MenuList")]);
}
