import { DialogWindow } from "@/components/base/Dialog";
import { MenuList } from "@/components/base/Menu";
import { PopoverPanel } from "@/components/base/Popover";

/** Code that a first look does without; here before somebody presses what needs it. */
export async function preloadChunks(): Promise<void> {
  // Where the master is away they are asked for again when they are needed.
  await Promise.allSettled([DialogWindow, PopoverPanel, MenuList].map((part) => part.fetch()));
}
