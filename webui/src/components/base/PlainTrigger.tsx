import type { ReactNode } from "react";
import buttonStyles from "./Button.module.css";

interface Props {
  label: string;
  popup: "dialog" | "menu";
  onPress?: () => void;
  children: ReactNode;
}

/** The button of what opens by it, until it is first pressed: the rest is code that most looks at a page never need. */
export function PlainTrigger({ label, popup, onPress, children }: Props) {
  return (
    <button
      type="button"
      className={buttonStyles.button}
      aria-label={label}
      aria-haspopup={popup}
      aria-expanded={false}
      onClick={onPress}
      onKeyDown={(event) => popup === "menu" && event.key === "ArrowDown" && onPress?.()}
    >
      {children}
    </button>
  );
}
