import { type ReactNode, Suspense, useState } from "react";

interface Props {
  label: string;
  popup: "dialog" | "menu";
  trigger: ReactNode;
  /** Draws the same button, and what it opens, open. */
  children: ReactNode;
}

/** A button until it is first pressed: what then opens is code that most looks at a page never need. */
export function OpensLater({ label, popup, trigger, children }: Props) {
  const [wanted, setWanted] = useState(false);
  const button = (
    <button
      type="button"
      className="button button-plain"
      aria-label={label}
      aria-haspopup={popup}
      aria-expanded={false}
      onClick={() => setWanted(true)}
      onKeyDown={(event) => popup === "menu" && event.key === "ArrowDown" && setWanted(true)}
    >
      {trigger}
    </button>
  );
  return wanted ? <Suspense fallback={button}>{children}</Suspense> : button;
}
