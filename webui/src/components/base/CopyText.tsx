import { clsx } from "clsx";
import { useState } from "react";
import { copyText } from "./copyText";
import buttonStyles from "./Button.module.css";
import styles from "./CopyText.module.css";

/** A line for a terminal, with a button that copies it. */
export function CopyText({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    if (!(await copyText(text))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
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
        {copied ? "Copied" : "Copy"}
      </button>
    </span>
  );
}
