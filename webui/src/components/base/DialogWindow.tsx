import { clsx } from "clsx";
import * as Radix from "@radix-ui/react-dialog";
import { type ReactNode, useContext, useState } from "react";
import { DialogsWait } from "./dialogsWait";
import { Icon } from "./Icon";
import buttonStyles from "./Button.module.css";
import dialogStyles from "./Dialog.module.css";

export interface DialogProps {
  open: boolean;
  onClose: () => void;
  title: string;
  /** Read out with the title. Not displayed if the body contains it. */
  description?: string;
  wide?: boolean;
  /** True if the dialog contains typed text: then only its own buttons close it. */
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
        <Radix.Overlay className={dialogStyles.overlay} />
        <Radix.Content
          {...(kept ? { onInteractOutside: stay, onEscapeKeyDown: stay } : {})}
          className={clsx(dialogStyles.dialog, wide && dialogStyles.wide)}
          {...(description ? {} : { "aria-describedby": undefined })}
        >
          <header className={dialogStyles.head}>
            <Radix.Title className={dialogStyles.title}>{title}</Radix.Title>
            <Radix.Close className={clsx(buttonStyles.button, buttonStyles.quiet)} aria-label="Close">
              <Icon name="close" />
            </Radix.Close>
          </header>
          {description && <Radix.Description className={dialogStyles.description}>{description}</Radix.Description>}
          <div className={dialogStyles.body}>{children}</div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

function stay(event: Event): void {
  event.preventDefault();
}
