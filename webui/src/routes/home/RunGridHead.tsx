import { clsx } from "clsx";
import { flexRender, type Header } from "@tanstack/react-table";
import type { Row } from "@/services/columns";
import { CHECK, cellClass, cellStyle, type GridColumn } from "./gridCell";
import type { Sort } from "./listState";
import { Icon } from "@/components/base/Icon";
import layout from "@/styles/layout.module.css";
import styles from "./RunGrid.module.css";

/** How many of the listed experiments are selected. */
export type SelectedPart = "none" | "some" | "all";

interface Props {
  headers: readonly Header<Row, unknown>[];
  columns: readonly GridColumn[];
  sort: readonly Sort[];
  onSort: (column: string, add: boolean) => void;
  selected: SelectedPart;
  /** Selects all listed experiments, or clears the selection. */
  onSelectAll: () => void;
}

/** Header row. */
export function RunGridHead({ headers, columns, sort, onSort, selected, onSelectAll }: Props) {
  return (
    <div className={styles.head} role="row">
      <div className={clsx(styles.cell, styles.pinned)} role="columnheader" style={cellStyle(CHECK, 0)}>
        <label className={styles.check}>
          <input
            type="checkbox"
            aria-label="Select all shown experiments"
            checked={selected === "all"}
            ref={(box) => {
              if (box) box.indeterminate = selected === "some";
            }}
            onChange={onSelectAll}
          />
        </label>
      </div>
      {headers.map((header, index) => (
        <HeadCell
          key={header.id}
          header={header}
          column={columns[index]!}
          place={sort.findIndex((each) => each.column === header.id)}
          count={sort.length}
          onSort={onSort}
        />
      ))}
    </div>
  );
}

interface CellProps {
  header: Header<Row, unknown>;
  column: GridColumn;
  /** Index among the sort columns; -1 for none. */
  place: number;
  count: number;
  onSort: (column: string, add: boolean) => void;
}

function HeadCell({ header, column, place, count, onSort }: CellProps) {
  const sorted = header.column.getIsSorted();
  const title = flexRender(header.column.columnDef.header, header.getContext());
  const isSortable = !column.look.computed;
  return (
    <div
      className={cellClass(column)}
      role="columnheader"
      style={cellStyle(column.width, column.left)}
      aria-sort={!isSortable ? undefined : sorted === "desc" ? "descending" : sorted === "asc" ? "ascending" : "none"}
    >
      {isSortable ? (
        <button
          type="button"
          className={layout.sortButton}
          title={`Sort by ${header.id}; with Shift, also by it`}
          onClick={(event) => onSort(header.id, event.shiftKey)}
        >
          <span>{title}</span>
          {sorted && (
            <span aria-hidden="true">
              <Icon name={sorted === "desc" ? "arrowDown" : "arrowUp"} />
              {count > 1 ? place + 1 : ""}
            </span>
          )}
        </button>
      ) : (
        <span title="The list cannot be sorted by this">{title}</span>
      )}
      <div
        className={styles.resizer}
        data-resizer={header.id}
        onMouseDown={header.getResizeHandler()}
        onTouchStart={header.getResizeHandler()}
      />
    </div>
  );
}
