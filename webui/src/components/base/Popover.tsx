import * as Radix from "@radix-ui/react-popover";
import type { ReactNode } from "react";

interface Props {
  label: string;
  trigger: ReactNode;
  open?: boolean;
  onOpenChange?: (open: boolean) => void;
  children: ReactNode;
}

/** A button with a small panel of its own. */
export function Popover({ label, trigger, children, ...state }: Props) {
  return (
    <Radix.Root {...state}>
      <Radix.Trigger className="button button-plain" aria-label={label}>
        {trigger}
      </Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className="popover" align="end" sideOffset={4} collisionPadding={8} aria-label={label}>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
