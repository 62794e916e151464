import type { ReactNode } from "react";
import buttonStyles from "./Button.module.css";

interface Props {
  label: string;
  popup: "dialog" | "menu";
  onPress?: () => void;
  children: ReactNode;
}

/** The button of a popup until its first press. The code of the popup is loaded only then. */
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
