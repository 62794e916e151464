import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { messageOf } from "@/api/problem";
import { Button } from "@/components/base/Button";
import { useSay } from "@/components/base/Toasts";
import { escapeControl } from "@/format/escapeControl";
import { editExperiment } from "@/services/experiments";

/** The name, which becomes a field when its pencil is pressed. */
export function EditableName({ id, name }: { id: number; name: string }) {
  const queries = useQueryClient();
  const say = useSay();
  const [typed, setTyped] = useState<string | null>(null);
  const save = async (event: FormEvent) => {
    event.preventDefault();
    try {
      if (typed !== null && typed !== name) await editExperiment(id, { name: typed });
      setTyped(null);
      await queries.invalidateQueries({ queryKey: ["experiment", String(id)] });
    } catch (error) {
      say({ text: messageOf(error), kind: "failed" });
    }
  };
  if (typed === null) {
    return (
      <h1>
        {escapeControl(name) || `experiment ${id}`}{" "}
        <Button kind="quiet" aria-label="Change the name" onClick={() => setTyped(name)}>
          ✎
        </Button>
      </h1>
    );
  }
  return (
    <form className="row" onSubmit={(event) => void save(event)}>
      <input
        autoFocus
        aria-label="Name"
        value={typed}
        maxLength={255}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && setTyped(null)}
      />
      <Button type="submit">Save</Button>
      <Button kind="quiet" onClick={() => setTyped(null)}>
        Cancel
      </Button>
    </form>
  );
}
