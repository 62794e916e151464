import { DialogWindow } from "./Dialog";
import { MenuList } from "./Menu";
import { PopoverPanel } from "./Popover";

/** Loads code that the first render does not need, before a user presses something that needs it. */
export async function preloadChunks(): Promise<void> {
  // If the master is down they are fetched again on use.
  await Promise.allSettled([DialogWindow, PopoverPanel, MenuList].map((part) => part.fetch()));
}
