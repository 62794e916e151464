import * as Radix from "@radix-ui/react-popover";
import type { ReactNode } from "react";
import buttonStyles from "./Button.module.css";
import overlayStyles from "./Overlay.module.css";

export interface PopoverProps {
  label: string;
  trigger: ReactNode;
  children: ReactNode;
}

/** Opens on its first render. */
export default function PopoverPanel({ label, trigger, children }: PopoverProps) {
  return (
    <Radix.Root defaultOpen>
      <Radix.Trigger className={buttonStyles.button} aria-label={label}>
        {trigger}
      </Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          className={overlayStyles.popover}
          align="end"
          sideOffset={4}
          collisionPadding={8}
          aria-label={label}
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
