import { lazy, type ReactNode, Suspense } from "react";

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

const DialogWindow = lazy(() => import("./DialogWindow"));

/** Over the page, which rests meanwhile: also while what draws it is on its way, so that no key acts on the page behind. */
export function Dialog(props: DialogProps) {
  if (!props.open) return null;
  return (
    <Suspense fallback={<div role="dialog" aria-label={props.title} aria-busy="true" className="visually-hidden" />}>
      <DialogWindow {...props} />
    </Suspense>
  );
}
