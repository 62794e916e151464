import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { messageOf } from "@/api/problem";
import { Button } from "@/components/base/Button";
import { useSay } from "@/components/base/Toasts";
import "@/components/code/code.css";
import { editExperiment } from "@/services/experiments";
import type { TabProps } from "../Experiment";

/** Free text beside the experiment; shown as it was typed. */
export default function Notes({ experiment }: TabProps) {
  const queries = useQueryClient();
  const say = useSay();
  const [typed, setTyped] = useState(experiment.notes);
  const [stored, setStored] = useState(experiment.notes);
  if (experiment.notes !== stored) {
    // Somebody else saved meanwhile: taken over where nothing was typed here.
    if (typed === stored) setTyped(experiment.notes);
    setStored(experiment.notes);
  }
  const changed = typed !== experiment.notes;
  const save = async () => {
    try {
      await editExperiment(experiment.id, { notes: typed });
      await queries.invalidateQueries({ queryKey: ["experiment", String(experiment.id)] });
      say({ text: "Notes saved" });
    } catch (error) {
      say({ text: messageOf(error), kind: "failed" });
    }
  };
  return (
    <section className="card" aria-label="Notes">
      <textarea
        className="notes"
        aria-label="Notes"
        rows={14}
        value={typed}
        placeholder="What was tried here, and what came of it."
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && void save()}
      />
      <div className="row">
        <Button kind="primary" why={changed ? undefined : "nothing was changed"} onClick={() => void save()}>
          Save
        </Button>
        {changed && <span className="soft">not saved yet</span>}
      </div>
    </section>
  );
}
