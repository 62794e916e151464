import type { ButtonHTMLAttributes, ReactNode } from "react";

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: "plain" | "primary" | "danger" | "quiet";
  /** Why it cannot be pressed: shown on hover and read out. The button stays focusable. */
  why?: string | undefined;
  busy?: boolean;
  children: ReactNode;
}

export function Button({ kind = "plain", why, busy = false, children, onClick, className, title, ...rest }: Props) {
  const off = why !== undefined || busy;
  return (
    <button
      type="button"
      className={`button button-${kind}${className ? ` ${className}` : ""}`}
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
