import { useQueryClient } from "@tanstack/react-query";
import { messageOf } from "@/api/problem";
import { Button } from "@/components/base/Button";
import { useSay } from "@/components/base/Toasts";
import "@/components/code/code.css";
import { useDraft } from "@/hooks/useDraft";
import { editExperiment } from "@/services/experiments";
import type { TabProps } from "./tabProps";

/** The notes of an experiment. Unsaved text is kept while another tab is shown. */
export default function Notes({ experiment }: TabProps) {
  const queries = useQueryClient();
  const say = useSay();
  const [draft, setDraft] = useDraft(`notes of experiment ${experiment.id}`);
  const typed = draft ?? experiment.notes;
  const changed = typed !== experiment.notes;
  const save = async () => {
    try {
      await editExperiment(experiment.id, { notes: typed });
      await queries.invalidateQueries({ queryKey: ["experiment", String(experiment.id)] });
      // More may have been typed while it was saved.
      setDraft((now) => (now === typed ? null : now));
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
        onChange={({ target }) => setDraft(() => (target.value === experiment.notes ? null : target.value))}
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
