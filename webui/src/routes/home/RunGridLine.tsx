import { clsx } from "clsx";
import { memo, type MouseEvent } from "react";
import type { Row } from "@/services/columns";
import { CHECK, cellClass, cellStyle, type GridColumn } from "./gridCell";
import type { PickLine } from "./useRangePick";
import typography from "@/styles/typography.module.css";
import styles from "./RunGrid.module.css";

interface Props {
  line: number;
  /** Undefined while loading. */
  row: Row | undefined;
  columns: readonly GridColumn[];
  top: number;
  isCursor: boolean;
  isSelected: boolean;
  pick: PickLine;
  moveCursor: (line: number, id: number | null) => void;
  open: (id: number, inNewTab: boolean) => void;
  addFilter: (column: string, value: string) => void;
}

/** A row. Memoized, so that scrolling renders only new rows. */
export const RunGridLine = memo(function RunGridLine(props: Props) {
  const { line, row, columns, top, isCursor, isSelected, pick, moveCursor, open, addFilter } = props;
  const press = (event: MouseEvent) => {
    moveCursor(line, row?.id ?? null);
    if (!row || hasOwnAction(event)) return;
    if (event.shiftKey) pick({ line, id: row.id }, true, true);
    else open(row.id, event.ctrlKey || event.metaKey);
  };
  return (
    <div
      className={clsx(styles.row, isCursor && styles.cursor, row && styles.opens)}
      data-cursor={isCursor || undefined}
      role="row"
      aria-rowindex={line + 2}
      aria-selected={row ? isSelected : undefined}
      style={{ top }}
      onClick={press}
      // Shift-click would select the text between the rows.
      onMouseDown={(event) => event.shiftKey && event.preventDefault()}
    >
      <div className={clsx(styles.cell, styles.pinned)} role="gridcell" style={cellStyle(CHECK, 0)}>
        {row && (
          <label className={styles.check}>
            <input
              type="checkbox"
              aria-label={`Select experiment ${row.id}`}
              checked={isSelected}
              onChange={({ target, nativeEvent }) =>
                pick({ line, id: row.id }, target.checked, "shiftKey" in nativeEvent && nativeEvent.shiftKey === true)
              }
            />
          </label>
        )}
      </div>
      {row ? (
        columns.map((column) => (
          <div
            key={column.id}
            className={cellClass(column)}
            role="gridcell"
            style={cellStyle(column.width, column.left)}
          >
            {column.look.draw(row, addFilter)}
          </div>
        ))
      ) : (
        // A single cell: fast scrolling renders hundreds of these.
        <div className={clsx(styles.cell, typography.soft)} role="gridcell">
          …
        </div>
      )}
    </div>
  );
});

/** True if the click targets a link, button or check box in the row, or ends a text selection. */
function hasOwnAction({ target, defaultPrevented }: MouseEvent): boolean {
  if (defaultPrevented) return true;
  if (target instanceof Element && target.closest("a, button, input, label")) return true;
  return (window.getSelection()?.toString() ?? "") !== "";
}
