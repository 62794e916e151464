import { type FormEvent, type ReactNode, useState } from "react";
import { Button } from "./base/Button";
import { Dialog } from "./base/Dialog";
import dialogStyles from "@/components/base/Dialog.module.css";
import layout from "@/styles/layout.module.css";

interface Props {
  open: boolean;
  onClose: () => void;
  title: string;
  /** The phrase to type. */
  word: string;
  action: string;
  run: () => void;
  children: ReactNode;
}

/** Asks for a phrase before an action that cannot be undone. */
export function TypedConfirmation({ open, onClose, title, word, action, run, children }: Props) {
  const [typed, setTyped] = useState("");
  const close = () => {
    setTyped("");
    onClose();
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (typed.trim() !== word) return;
    run();
    close();
  };
  return (
    <Dialog open={open} onClose={close} title={title}>
      <form className={layout.field} onSubmit={submit}>
        {children}
        <label className={layout.field}>
          <span>
            Type <code>{word}</code> to confirm
          </span>
          <input
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
            autoComplete="off"
            spellCheck={false}
            autoFocus
          />
        </label>
        <div className={dialogStyles.foot}>
          <Button onClick={close}>Cancel</Button>
          <Button kind="danger" type="submit" why={typed.trim() === word ? undefined : `type “${word}” first`}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
