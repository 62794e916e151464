import { Button } from "@/components/base/Button";
import { useSay } from "@/components/base/Toasts";
import { useDraft } from "@/hooks/useDraft";
import type { TabProps } from "./tabProps";
import { useEditExperiment } from "./useEditExperiment";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./Notes.module.css";

/** The notes of an experiment. Unsaved text is kept while another tab is shown. */
export default function Notes({ experiment }: TabProps) {
  const say = useSay();
  const [draft, setDraft] = useDraft(`notes of experiment ${experiment.id}`);
  const typed = draft ?? experiment.notes;
  const changed = typed !== experiment.notes;
  const edit = useEditExperiment(experiment.id, ({ notes }) => {
    // More may have been typed while it was saved.
    setDraft((now) => (now === notes ? null : now));
    say({ text: "Notes saved" });
  });
  const save = () => edit.mutate({ notes: typed });
  return (
    <section className={layout.card} aria-label="Notes">
      <textarea
        className={styles.notes}
        aria-label="Notes"
        rows={14}
        value={typed}
        placeholder="What did you try, and what was the result?"
        onChange={({ target }) => setDraft(() => (target.value === experiment.notes ? null : target.value))}
        onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && save()}
      />
      <div className={layout.row}>
        <Button kind="primary" why={changed ? undefined : "no changes to save"} onClick={save}>
          Save
        </Button>
        {changed && <span className={typography.soft}>not saved yet</span>}
      </div>
    </section>
  );
}
