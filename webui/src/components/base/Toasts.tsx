import { clsx } from "clsx";
import { createContext, type ReactNode, useCallback, useContext, useState } from "react";
import { escapeControl } from "@/format/escapeControl";
import { Icon } from "./Icon";
import buttonStyles from "./Button.module.css";
import styles from "./Toasts.module.css";

export interface Toast {
  text: string;
  kind?: "said" | "failed";
  /** Action that reverts the change. */
  undo?: { title: string; run: () => void };
}

interface Shown extends Toast {
  id: number;
}

const Say = createContext<(toast: Toast) => void>(() => undefined);
const SECONDS = 8;
let count = 0;

export function ToastProvider({ children }: { children: ReactNode }) {
  const [shown, setShown] = useState<readonly Shown[]>([]);
  const drop = useCallback((id: number) => setShown((all) => all.filter((toast) => toast.id !== id)), []);
  const say = useCallback(
    (toast: Toast) => {
      const id = (count += 1);
      setShown((all) => [...all.slice(-3), { ...toast, id }]);
      setTimeout(() => drop(id), SECONDS * 1000);
    },
    [drop],
  );
  return (
    <Say value={say}>
      {children}
      <div className={styles.toasts} role="status" aria-live="polite">
        {shown.map((toast) => (
          <div
            key={toast.id}
            className={clsx(styles.toast, toast.kind === "failed" && styles.failed)}
            data-testid="toast"
          >
            <span>{escapeControl(toast.text)}</span>
            {toast.undo && (
              <UndoButton
                title={toast.undo.title}
                run={() => {
                  toast.undo?.run();
                  drop(toast.id);
                }}
              />
            )}
            <button
              type="button"
              className={clsx(buttonStyles.button, buttonStyles.quiet)}
              aria-label="Dismiss"
              onClick={() => drop(toast.id)}
            >
              <Icon name="close" />
            </button>
          </div>
        ))}
      </div>
    </Say>
  );
}

function UndoButton({ title, run }: { title: string; run: () => void }) {
  return (
    <button type="button" className={buttonStyles.button} onClick={run}>
      {title}
    </button>
  );
}

export function useSay(): (toast: Toast) => void {
  return useContext(Say);
}
