import { clsx } from "clsx";
import { useState } from "react";
import buttonStyles from "./Button.module.css";
import styles from "./CopyText.module.css";

/** A line for a terminal, with a button that copies it. */
export function CopyText({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    } catch {
      // Without https no clipboard is given; the line can be selected.
    }
  };
  return (
    <span className={styles.copy}>
      <code>{text}</code>
      <button
        type="button"
        className={clsx(buttonStyles.button, buttonStyles.quiet)}
        onClick={() => void copy()}
        aria-label={`Copy: ${text}`}
      >
        {copied ? "copied" : "copy"}
      </button>
    </span>
  );
}
