import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { Button } from "@/components/base/Button";
import { copyText } from "@/components/base/copyText";
import { Confirmation } from "@/components/Confirmation";
import { setPreferences, usePreferences, useShownTheme } from "@/browser/preferences";
import { escapeControl } from "@/format/escapeControl";
import type { Shell } from "./shell";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./TerminalView.module.css";

const PHASES = {
  connecting: "Connecting…",
  open: "Connected",
  reconnecting: "The connection was lost; connecting again…",
  ended: "",
};

interface Props {
  shell: Shell;
  /** What the shell runs in. */
  inside: "trial" | "container";
  isTaskOver: boolean;
  openAgain: () => void;
}

/** A shell on the screen, with what it says about its connection and its end. */
export function TerminalView({ shell, inside, isTaskOver, openAgain }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const after = useRef<HTMLDivElement>(null);
  const { phase, text } = useSyncExternalStore(shell.subscribe, shell.snapshot);
  const { screenReader } = usePreferences();
  const theme = useShownTheme();
  const [ending, setEnding] = useState(false);
  const leave = useCallback(() => after.current?.querySelector("button")?.focus(), []);
  useEffect(() => {
    const { current } = place;
    if (!current) return;
    shell.show(current, (event) => onKey(event, shell, leave));
    const observer = new ResizeObserver(() => shell.fit());
    observer.observe(current);
    return () => {
      observer.disconnect();
      shell.hide();
    };
  }, [shell, leave]);
  useEffect(() => shell.adjust({ screenReaderMode: screenReader }), [shell, screenReader, theme]);
  const isOver = phase === "ended";
  return (
    <section className={styles.shell} aria-label="Shell">
      <div className={styles.terminal} ref={place} />
      <div className={layout.row} ref={after}>
        {isOver ? (
          <Button kind="primary" why={isTaskOver ? `The ${inside} has ended` : undefined} onClick={openAgain}>
            Open again
          </Button>
        ) : (
          <Button onClick={() => setEnding(true)}>End…</Button>
        )}
        <span role="status" className={layout.grow}>
          {isOver ? escapeControl(`${text}${isTaskOver ? ` The ${inside} has ended.` : ""}`) : PHASES[phase]}
        </span>
        <label>
          <input
            type="checkbox"
            checked={screenReader}
            onChange={(event) => setPreferences({ screenReader: event.target.checked })}
          />{" "}
          Screen reader
        </label>
      </div>
      <p className={typography.hint}>
        <kbd>Ctrl Shift Enter</kbd> leaves the terminal. <kbd>Ctrl Shift C</kbd> copies and <kbd>Ctrl Shift V</kbd>{" "}
        pastes; on macOS <kbd>⌘ C</kbd> and <kbd>⌘ V</kbd>. The shell goes on while you look at other parts of this
        page.
      </p>
      <Confirmation
        open={ending}
        onClose={() => setEnding(false)}
        title="End the shell?"
        action="End"
        run={() => shell.end()}
      >
        <p>The programs that it has started are ended. The {inside} goes on.</p>
      </Confirmation>
    </section>
  );
}

/** Returns false for the keys that the page takes from the terminal. */
function onKey(event: KeyboardEvent, shell: Shell, leave: () => void): boolean {
  const isLeaving = event.ctrlKey && event.shiftKey && event.key === "Enter";
  const isCopying = event.code === "KeyC" && (event.metaKey || (event.ctrlKey && event.shiftKey));
  if (!isLeaving && !isCopying) return true;
  event.preventDefault();
  if (event.type !== "keydown") return false;
  if (isLeaving) leave();
  else if (shell.selection !== "") void copyText(shell.selection);
  return false;
}
