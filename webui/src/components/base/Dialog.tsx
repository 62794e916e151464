import { createContext, type ReactNode } from "react";
import { lazy } from "@/app/lazy";

export interface DialogProps {
  open: boolean;
  onClose: () => void;
  title: string;
  /** Read out with the title; not shown again where the body says it. */
  description?: string;
  wide?: boolean;
  /** Holds what was typed: only its own buttons close it. */
  kept?: boolean;
  children: ReactNode;
}

/**
 * Whether what opens now waits: while one is asked to sign in, over everything. Two that open at once would each hide the
 * other; what stood open before stays.
 */
export const DialogsWait = createContext(false);

export const DialogWindow = lazy<DialogProps>(
  () => import("./DialogWindow"),
  ({ title }) => <div role="dialog" aria-label={title} aria-busy="true" className="visually-hidden" />,
);

/** Over the page, which rests meanwhile: also while what draws it is on its way, so that no key acts on the page behind. */
export function Dialog(props: DialogProps) {
  return props.open ? <DialogWindow {...props} /> : null;
}
