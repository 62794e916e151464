import { useQuery } from "@tanstack/react-query";
import { clsx } from "clsx";
import { type FormEvent, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { ActionGroup } from "@/components/base/ActionGroup";
import { Button } from "@/components/base/Button";
import { Menu } from "@/components/base/Menu";
import { Popover } from "@/components/base/Popover";
import { Confirmation } from "@/components/Confirmation";
import { DeleteExperiments } from "@/components/DeleteExperiments";
import { ExperimentNames } from "@/components/ExperimentNames";
import { allowedActionsQuery, type BulkVerb } from "@/services/columns";
import type { Selection } from "./selection";
import type { useBulk } from "./useBulk";
import { useFootRoom } from "./useFootRoom";
import { Icon } from "@/components/base/Icon";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./BulkBar.module.css";

interface Props {
  selection: Selection;
  /** Selected experiments that the list no longer contains. */
  hidden: readonly number[];
  total: number;
  selectAll: () => void;
  bulk: ReturnType<typeof useBulk>;
}

const MAX_COMPARED = 100;

/**
 * The actions for the selection, each with the number of experiments to which it applies if not to all. Always shows
 * the size of the selection.
 */
export function BulkBar({ selection, hidden, total, selectAll, bulk }: Props) {
  const navigate = useNavigate();
  // The experiments that the dialog names, whatever actions apply to them meanwhile.
  const [deleting, setDeleting] = useState<readonly number[] | null>(null);
  const [killing, setKilling] = useState<readonly number[] | null>(null);
  const [label, setLabel] = useState("");
  const ids = [...selection.ids];
  const count = ids.length;
  const bar = useRef<HTMLDivElement>(null);
  useFootRoom(bar);
  const able = useAble(ids);
  const offered = (verb: BulkVerb, title: string, run: (able: number[]) => void) => {
    const those = able(verb);
    if (those.length === 0) return [];
    // "Kill (2)…": an action that opens a dialog ends in an ellipsis.
    const counted = title.replace(/…?$/, ` (${those.length})$&`);
    return [{ verb, title: those.length < count ? counted : title, run: () => run(those) }];
  };
  const acting = (verb: BulkVerb) => (those: number[]) => bulk.act(verb, those);
  const more = [
    ...offered("cancel", "Stop", acting("cancel")).map((item) => ({ ...item, note: "saves a checkpoint first" })),
    ...offered("archive", "Archive", acting("archive")),
    ...offered("unarchive", "Unarchive", acting("unarchive")),
    ...offered("delete", "Delete…", setDeleting).map((item) => ({ ...item, danger: true })),
  ];
  const addLabel = (event: FormEvent) => {
    event.preventDefault();
    if (label.trim()) bulk.label({ ids, add: [label.trim()], remove: [] });
    setLabel("");
  };
  const removeLabel = () => {
    if (label.trim()) bulk.label({ ids, add: [], remove: [label.trim()] });
    setLabel("");
  };
  return (
    <ActionGroup box={bar} className={clsx(layout.row, styles.bulk)} role="toolbar" label="Selected experiments">
      <strong>{count} selected</strong>
      {hidden.length > 0 && (
        <span className={clsx(layout.row, typography.warning)} role="status">
          {hidden.length === 1 ? "1 selected is not shown" : `${hidden.length} selected are not shown`}
          <Button kind="quiet" onClick={() => selection.drop(hidden)}>
            Deselect
          </Button>
        </span>
      )}
      {count - hidden.length < total && <Button kind="quiet" onClick={selectAll}>{`Select all ${total}`}</Button>}
      {[...offered("pause", "Pause", acting("pause")), ...offered("activate", "Activate", acting("activate"))].map(
        ({ verb, title, run }) => (
          <Button key={verb} onClick={run}>
            {title}
          </Button>
        ),
      )}
      {offered("kill", "Kill…", setKilling).map(({ verb, title, run }) => (
        <Button key={verb} kind="danger" onClick={run}>
          {title}
        </Button>
      ))}
      {count > MAX_COMPARED ? (
        <span className={typography.soft}>At most {MAX_COMPARED} can be compared</span>
      ) : (
        count > 1 && <Button onClick={() => void navigate(`/compare?experiments=${ids.join(",")}`)}>Compare</Button>
      )}
      <Popover label="Label" trigger="Label">
        <form className={layout.row} onSubmit={addLabel}>
          <input
            value={label}
            onChange={(event) => setLabel(event.target.value)}
            placeholder="Label"
            aria-label="Label"
          />
          <Button type="submit">Add</Button>
          <Button onClick={removeLabel}>Remove</Button>
        </form>
      </Popover>
      {more.length > 0 && (
        <Menu label="More for the selected" items={more}>
          More <Icon name="down" />
        </Menu>
      )}
      <Button kind="quiet" onClick={selection.clear}>
        Clear
      </Button>
      {killing && (
        <Confirmation
          open
          onClose={() => setKilling(null)}
          title={`Kill ${killing.length === 1 ? "1 experiment" : `${killing.length} experiments`}?`}
          action="Kill"
          run={() => bulk.act("kill", killing)}
          alternative={{ title: "Stop instead", run: () => bulk.act("cancel", killing) }}
        >
          <ExperimentNames ids={killing} />
          <p>
            Kill ends them at once, without a checkpoint: each running trial loses its work since its last checkpoint.
            Stop saves a checkpoint first, then ends them.
          </p>
        </Confirmation>
      )}
      <DeleteExperiments
        open={deleting !== null}
        onClose={() => setDeleting(null)}
        ids={deleting ?? []}
        run={() => deleting && bulk.act("delete", deleting, selection.drop)}
      />
    </ActionGroup>
  );
}

/**
 * Returns the selected experiments to which an action applies; all if the master does not answer, since its refusal
 * then gives the reason.
 */
function useAble(ids: readonly number[]): (verb: BulkVerb) => number[] {
  const { data: groups, error } = useQuery(allowedActionsQuery(ids));
  if (!groups) return () => (error ? [...ids] : []);
  const selected = new Set(ids);
  return (verb) =>
    groups.flatMap((group) => (group.actions.includes(verb) ? group.ids.filter((id) => selected.has(id)) : []));
}
