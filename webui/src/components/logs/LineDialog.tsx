import { useQuery } from "@tanstack/react-query";
import { grouped } from "@/format/number";
import { escapeControl } from "@/format/escapeControl";
import { fetchWholeLine, type LogLine } from "@/services/logs";
import { CopyText } from "../base/CopyText";
import { Dialog } from "../base/Dialog";
import { ExactTime } from "../TimeText";
import typography from "@/styles/typography.module.css";
import styles from "./LineDialog.module.css";

const DISPLAY_LIMIT = 200_000;

interface Props {
  line: LogLine;
  /** Line number within the log; null if unknown. */
  number: number | null;
  onClose: () => void;
}

/** One line with all of its fields, and its whole text if the list truncates it. */
export function LineDialog({ line, number, onClose }: Props) {
  const isCut = line.length > line.text.length;
  const { data } = useQuery({
    queryKey: ["log-line", line.id],
    queryFn: () => fetchWholeLine(line.id),
    enabled: isCut,
  });
  const text = data?.text ?? line.text;
  const link = new URL(window.location.href);
  link.searchParams.set("line", String(line.id));
  return (
    <Dialog open onClose={onClose} title={number === null ? "Log line" : `Line ${grouped(number)}`} wide>
      <dl className={typography.facts}>
        <dt>Written</dt>
        <dd>
          <ExactTime at={line.time} />
        </dd>
        <dt>Source</dt>
        <dd>
          {line.source}
          {line.rank !== null && `, rank ${line.rank}`}, attempt {line.runId}
          {line.agentId && `, on ${line.agentId}`}, {line.stdtype}
        </dd>
        <dt>Link</dt>
        <dd>
          <CopyText text={link.href} />
        </dd>
      </dl>
      <pre className={styles.whole}>{escapeControl(text.slice(0, DISPLAY_LIMIT))}</pre>
      {text.length > DISPLAY_LIMIT && (
        <p className={typography.hint}>
          The first {grouped(DISPLAY_LIMIT)} of {grouped(line.length)} characters; the download has all.
        </p>
      )}
    </Dialog>
  );
}
