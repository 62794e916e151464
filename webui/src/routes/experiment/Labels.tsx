import { clsx } from "clsx";
import { type FormEvent, useState } from "react";
import { Button } from "@/components/base/Button";
import { Popover } from "@/components/base/Popover";
import { escapeControl } from "@/format/escapeControl";
import { useEditExperiment } from "./useEditExperiment";
import { Icon } from "@/components/base/Icon";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

/** The experiment's labels, which can be added and removed in place. */
export function Labels({ id, labels }: { id: number; labels: readonly string[] }) {
  const edit = useEditExperiment(id);
  const [typed, setTyped] = useState("");
  const add = (event: FormEvent) => {
    event.preventDefault();
    if (edit.isPending) return;
    if (typed.trim()) edit.mutate({ labels: [...labels, typed.trim()] });
    setTyped("");
  };
  return (
    <span className={layout.row}>
      {labels.map((label) => (
        <span key={label} className={typography.tag} title={escapeControl(label)}>
          {escapeControl(label)}
        </span>
      ))}
      <Popover label="Edit labels" trigger="Labels">
        <ul>
          {labels.map((label) => (
            <li key={label} className={layout.row}>
              <span className={clsx(typography.tag, layout.grow)}>{escapeControl(label)}</span>
              <Button
                kind="quiet"
                aria-label={`Remove label ${escapeControl(label)}`}
                disabled={edit.isPending}
                onClick={() => edit.mutate({ labels: labels.filter((each) => each !== label) })}
              >
                <Icon name="close" />
              </Button>
            </li>
          ))}
        </ul>
        <form className={layout.row} onSubmit={add}>
          <input
            value={typed}
            maxLength={100}
            onChange={(event) => setTyped(event.target.value)}
            placeholder="New label"
            aria-label="New label"
          />
          <Button type="submit">Add</Button>
        </form>
      </Popover>
    </span>
  );
}
