import { useState } from "react";

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
    <span className="copy">
      <code>{text}</code>
      <button type="button" className="button button-quiet" onClick={() => void copy()} aria-label={`Copy: ${text}`}>
        {copied ? "copied" : "copy"}
      </button>
    </span>
  );
}
