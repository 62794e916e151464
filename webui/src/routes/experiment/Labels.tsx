import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { messageOf } from "@/api/problem";
import { Button } from "@/components/base/Button";
import { Popover } from "@/components/base/Popover";
import { useSay } from "@/components/base/Toasts";
import { escapeControl } from "@/format/escapeControl";
import { editExperiment } from "@/services/experiments";

/** The experiment's tags, added and taken away in place. */
export function Labels({ id, labels }: { id: number; labels: readonly string[] }) {
  const queries = useQueryClient();
  const say = useSay();
  const [typed, setTyped] = useState("");
  const keep = async (next: string[]) => {
    try {
      await editExperiment(id, { labels: next });
      await queries.invalidateQueries({ queryKey: ["experiment", String(id)] });
    } catch (error) {
      say({ text: messageOf(error), kind: "failed" });
    }
  };
  const add = (event: FormEvent) => {
    event.preventDefault();
    if (typed.trim()) void keep([...labels, typed.trim()]);
    setTyped("");
  };
  return (
    <span className="row">
      {labels.map((label) => (
        <span key={label} className="tag" title={label}>
          {escapeControl(label)}
        </span>
      ))}
      <Popover label="Change the tags" trigger="Tags">
        <ul>
          {labels.map((label) => (
            <li key={label} className="row">
              <span className="tag grow">{escapeControl(label)}</span>
              <Button
                kind="quiet"
                aria-label={`Take away the tag ${label}`}
                onClick={() => void keep(labels.filter((each) => each !== label))}
              >
                ✕
              </Button>
            </li>
          ))}
        </ul>
        <form className="row" onSubmit={add}>
          <input
            value={typed}
            maxLength={100}
            onChange={(event) => setTyped(event.target.value)}
            placeholder="New tag"
            aria-label="New tag"
          />
          <Button type="submit">Add</Button>
        </form>
      </Popover>
    </span>
  );
}
