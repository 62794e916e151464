import type { ReactNode } from "react";
import { Button } from "./base/Button";
import { Dialog } from "./base/Dialog";
import dialogStyles from "@/components/base/Dialog.module.css";

interface Props {
  open: boolean;
  onClose: () => void;
  title: string;
  action: string;
  run: () => void;
  /** An action with less effect, offered as an alternative. */
  alternative?: { title: string; run: () => void } | undefined;
  children: ReactNode;
}

/** A confirmation before an action that loses work. Cancel has the focus, so that Enter loses nothing. */
export function Confirmation({ open, onClose, title, action, run, alternative, children }: Props) {
  const closing = (act: () => void) => () => {
    onClose();
    act();
  };
  return (
    <Dialog open={open} onClose={onClose} title={title}>
      {children}
      <div className={dialogStyles.foot}>
        <Button onClick={onClose} autoFocus>
          Cancel
        </Button>
        {alternative && <Button onClick={closing(alternative.run)}>{alternative.title}</Button>}
        <Button kind="danger" onClick={closing(run)}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}
