import { clsx } from "clsx";
import * as Radix from "@radix-ui/react-dropdown-menu";
import type { ReactNode } from "react";
import buttonStyles from "./Button.module.css";
import overlayStyles from "./Overlay.module.css";

export interface MenuItem {
  title: string;
  run: () => void;
  /** Why it is disabled. */
  why?: string | undefined;
  danger?: boolean;
  keys?: string;
  /** A short description of the action. */
  note?: string;
}

export interface MenuProps {
  label: string;
  items: readonly MenuItem[];
  children: ReactNode;
}

/** Opens on its first render. */
export default function MenuList({ label, items, children }: MenuProps) {
  return (
    <Radix.Root modal={false} defaultOpen>
      <Radix.Trigger className={buttonStyles.button} aria-label={label}>
        {children}
      </Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className={overlayStyles.menu} align="end" sideOffset={4} collisionPadding={8}>
          {items.map((item) => (
            <Radix.Item
              key={item.title}
              className={clsx(overlayStyles.item, item.danger && overlayStyles.danger)}
              disabled={item.why !== undefined}
              onSelect={item.run}
            >
              <span>{item.title}</span>
              {item.why !== undefined ? (
                <small>{item.why}</small>
              ) : item.keys ? (
                <kbd>{item.keys}</kbd>
              ) : item.note ? (
                <small>{item.note}</small>
              ) : null}
            </Radix.Item>
          ))}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
