import * as Radix from "@radix-ui/react-dialog";
import type { ReactNode } from "react";

interface Props {
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

export function Dialog({ open, onClose, title, description, wide = false, kept = false, children }: Props) {
  return (
    <Radix.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="dialog-overlay" />
        <Radix.Content {...(kept ? { onInteractOutside: stay, onEscapeKeyDown: stay } : {})} className={wide ? "dialog dialog-wide" : "dialog"} {...(description ? {} : { "aria-describedby": undefined })}>
          <header className="dialog-head">
            <Radix.Title className="dialog-title">{title}</Radix.Title>
            <Radix.Close className="button button-quiet" aria-label="Close">
              ✕
            </Radix.Close>
          </header>
          {description && <Radix.Description className="dialog-description">{description}</Radix.Description>}
          <div className="dialog-body">{children}</div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

function stay(event: Event): void {
  event.preventDefault();
}
