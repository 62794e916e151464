import * as Radix from "@radix-ui/react-dialog";
import { type ReactNode, useContext, useState } from "react";
import { DialogsWait } from "./dialogsWait";

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

export default function DialogWindow({
  onClose,
  title,
  description,
  wide = false,
  kept = false,
  children,
}: DialogProps) {
  const waits = useContext(DialogsWait);
  const [begun, setBegun] = useState(!waits);
  if (!begun && !waits) setBegun(true);
  if (!begun) return null;
  return (
    <Radix.Root open onOpenChange={(next) => !next && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="dialog-overlay" />
        <Radix.Content
          {...(kept ? { onInteractOutside: stay, onEscapeKeyDown: stay } : {})}
          className={wide ? "dialog dialog-wide" : "dialog"}
          {...(description ? {} : { "aria-describedby": undefined })}
        >
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
