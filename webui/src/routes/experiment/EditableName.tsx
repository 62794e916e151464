import { type FormEvent, useState } from "react";
import { Button } from "@/components/base/Button";
import { escapeControl } from "@/format/escapeControl";
import { useEditExperiment } from "./useEditExperiment";
import { Icon } from "@/components/base/Icon";
import layout from "@/styles/layout.module.css";

/** The name, which becomes a field when its edit button is pressed. */
export function EditableName({ id, name }: { id: number; name: string }) {
  const [typed, setTyped] = useState<string | null>(null);
  const edit = useEditExperiment(id, () => setTyped(null));
  const save = (event: FormEvent) => {
    event.preventDefault();
    if (typed === null || typed === name) setTyped(null);
    else edit.mutate({ name: typed });
  };
  if (typed === null) {
    return (
      <h1>
        {escapeControl(name) || `experiment ${id}`}{" "}
        <Button kind="quiet" aria-label="Edit name" onClick={() => setTyped(name)}>
          <Icon name="pencil" />
        </Button>
      </h1>
    );
  }
  return (
    <form className={layout.row} onSubmit={save}>
      <input
        autoFocus
        aria-label="Name"
        value={typed}
        maxLength={255}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && setTyped(null)}
      />
      <Button type="submit" busy={edit.isPending}>
        Save
      </Button>
      <Button kind="quiet" onClick={() => setTyped(null)}>
        Cancel
      </Button>
    </form>
  );
}
