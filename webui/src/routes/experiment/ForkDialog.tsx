import { useMutation, useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { messageOf, Problem } from "@/api/problem";
import { Button } from "@/components/base/Button";
import { Dialog } from "@/components/base/Dialog";
import { Failure } from "@/components/base/Failure";
import { Loading } from "@/components/base/Loading";
import { type Remark, YamlEditor } from "@/components/editor/YamlEditor";
import { checkConfig, type ConfigDiagnostic, configQuery, forkExperiment } from "@/services/experiments";
import { forkText } from "./forkText";
import { escapeControl } from "@/format/escapeControl";
import dialogStyles from "@/components/base/Dialog.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./ForkDialog.module.css";

interface Props {
  parentId: number;
  /** Set for a fork of one trial: its hyperparameters become constants, and it starts from its newest checkpoint. */
  trial?: { id: number; hparams: Record<string, unknown>; hasCheckpoint: boolean };
  onClose: () => void;
}

/**
 * Creates an experiment from this one's code and a changed configuration, which the master checks while it is typed.
 */
export default function ForkDialog({ parentId, trial, onClose }: Props) {
  const navigate = useNavigate();
  const { data: config, error } = useQuery(configQuery(parentId));
  const [text, setText] = useState<string | null>(null);
  const [edited, setEdited] = useState(false);
  const [found, setFound] = useState<readonly ConfigDiagnostic[]>([]);
  useEffect(() => {
    if (config && text === null) setText(forkText(config.submitted, parentId, trial));
  }, [config, text, parentId, trial]);
  const asked = useRef(0);
  const check = useCallback(async (value: string): Promise<Remark[]> => {
    const mine = (asked.current += 1);
    try {
      const { diagnostics } = await checkConfig(value);
      // Answers may arrive out of order: errors of an older text must not block.
      if (mine === asked.current) setFound(diagnostics);
      return diagnostics.map((each) => ({
        ...each,
        message: each.hint ? `${each.message} (${each.hint})` : each.message,
      }));
    } catch {
      // Without an answer, the master checks again on submission.
      return [];
    }
  }, []);
  const edit = (value: string) => {
    setText(value);
    setEdited(true);
  };
  const errors = found.filter((each) => each.severity === "error");
  const why =
    errors.length === 0 ? undefined : errors.length === 1 ? "the error above" : `the ${errors.length} errors above`;
  const fork = useMutation({
    mutationFn: (activate: boolean) => forkExperiment(parentId, text ?? "", activate),
    networkMode: "always",
    onSuccess: (id) => {
      onClose();
      void navigate(`/experiments/${id}`);
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      wide
      kept={edited}
      title={trial ? `Fork trial ${trial.id}` : `Fork experiment ${parentId}`}
      description="The fork uses the parent's code. Change the configuration as you like."
    >
      {error ? (
        <Failure error={error} />
      ) : text === null ? (
        <Loading what="the configuration" />
      ) : (
        <>
          <YamlEditor label="Configuration" value={text} onChange={edit} check={check} />
          <ul className={styles.remarks} aria-label="Problems" aria-live="polite">
            {found.map((each, index) => (
              <li key={index} className={each.severity === "error" ? typography.problem : typography.hint}>
                line {each.line}:{each.column} {each.severity} [{each.code}] {escapeControl(each.message)}
                {each.hint && ` — ${escapeControl(each.hint)}`}
              </li>
            ))}
          </ul>
          {fork.error && (
            <pre className={typography.problem} role="alert">
              {refusalOf(fork.error)}
            </pre>
          )}
          <div className={dialogStyles.foot}>
            <Button onClick={onClose}>Cancel</Button>
            <Button busy={fork.isPending} why={why} onClick={() => fork.mutate(false)}>
              Create paused
            </Button>
            <Button kind="primary" busy={fork.isPending} why={why} onClick={() => fork.mutate(true)}>
              Create and start
            </Button>
          </div>
        </>
      )}
    </Dialog>
  );
}

function refusalOf(error: Error): string {
  return error instanceof Problem && error.diagnostics.length > 0
    ? "The master refused the configuration:\n" + error.message
    : messageOf(error);
}
