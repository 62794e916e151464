import type { components } from "@/api/schema";
import { bytes } from "@/format/number";
import { escapeControl } from "@/format/escapeControl";
import typography from "@/styles/typography.module.css";
import styles from "./FileTree.module.css";

export type FileNode = components["schemas"]["FileNode"];

interface Props {
  nodes: readonly FileNode[];
  chosen: string;
  onChoose: (path: string) => void;
}

/** A tree of folders that open and files that can be selected. */
export function FileTree({ nodes, chosen, onChoose }: Props) {
  return (
    <ul className={styles.tree}>
      {nodes.map((node) => (
        <li key={node.path}>
          {node.isDir ? (
            <details open={(node.files ?? []).length < 30}>
              <summary>{escapeControl(node.name ?? "")}/</summary>
              <FileTree nodes={node.files ?? []} chosen={chosen} onChoose={onChoose} />
            </details>
          ) : (
            <button
              type="button"
              className={styles.button}
              data-testid="file"
              aria-current={node.path === chosen || undefined}
              onClick={() => onChoose(node.path ?? "")}
            >
              <span>{escapeControl(node.name ?? "")}</span>{" "}
              <small className={typography.soft}>{bytes(node.contentLength ?? 0)}</small>
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}
