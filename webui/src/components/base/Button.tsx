import { clsx } from "clsx";
import type { ButtonHTMLAttributes, ReactNode } from "react";
import styles from "./Button.module.css";

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: "plain" | "primary" | "danger" | "quiet";
  /** Reason why the button is disabled: shown on hover and read out. The button stays focusable. */
  why?: string | undefined;
  busy?: boolean;
  children: ReactNode;
}

export function Button({ kind = "plain", why, busy = false, children, onClick, className, title, ...rest }: Props) {
  const off = why !== undefined || busy;
  return (
    <button
      type="button"
      className={clsx(styles.button, kind !== "plain" && styles[kind], className)}
      aria-disabled={off || undefined}
      aria-busy={busy || undefined}
      title={why ?? title}
      onClick={(event) => {
        if (off) event.preventDefault();
        else onClick?.(event);
      }}
      {...rest}
    >
      {children}
    </button>
  );
}
