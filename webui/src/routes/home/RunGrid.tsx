import { clsx } from "clsx";
import {
  type ColumnDef,
  flexRender,
  getCoreRowModel,
  type Header,
  type SortingState,
  useReactTable,
} from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type CSSProperties,
  memo,
  type RefObject,
  type UIEvent,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
} from "react";
import { usePreferences } from "@/app/preferences";
import type { Row } from "@/services/columns";
import { type ColumnLook, lookOf } from "./columns";
import { type Cursor, followed } from "./cursor";
import type { ListState } from "./listState";
import { pinnedAt } from "./pinned";
import { type ListShape, useRows } from "./sections";
import type { Selection } from "./selection";
import { escapeControl } from "@/format/escapeControl";
import { Icon } from "@/components/base/Icon";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./RunGrid.module.css";

/** The row on a line of the screen; undefined where none is there. */
export type RowAt = (line: number) => Row | "on its way" | undefined;

interface Props {
  state: ListState;
  shape: ListShape;
  asked: readonly string[];
  selection: Selection;
  cursor: Cursor;
  setCursor: (cursor: Cursor) => void;
  onSort: (column: string, add: boolean) => void;
  onGroup: (key: string) => void;
  addFilter: (column: string, value: string) => void;
  /** Hands out the row on a line, for what keys do. */
  rowAt: RefObject<RowAt>;
  /** Told when other rows are there. */
  onRows: () => void;
}

const CHECK = 40;
const NO_ROWS: Row[] = [];

/** The list. Only what is on the screen exists; rows come in pages. */
export function RunGrid(props: Props) {
  const { state, shape, selection, cursor, setCursor, onRows, addFilter } = props;
  const compact = usePreferences().density === "compact";
  const frame = useRef<HTMLDivElement>(null);
  const height = compact ? 28 : 36;
  const virtual = useVirtualizer({
    count: shape.length,
    getScrollElement: () => frame.current,
    estimateSize: () => height,
    overscan: 12,
  });
  useEffect(() => virtual.measure(), [virtual, height]);
  const items = virtual.getVirtualItems();
  const found = useRows(shape, props.asked, items[0]?.index ?? 0, items.at(-1)?.index ?? -1, virtual.isScrolling);
  const at = followed(cursor, found);
  useEffect(() => {
    if (at.line >= 0) virtual.scrollToIndex(at.line);
  }, [virtual, at.line]);
  useLayoutEffect(() => {
    props.rowAt.current = (line) =>
      found.get(line) ??
      (items.some(({ index }) => index === line) && shape.lineAt(line)?.kind === "row" ? "on its way" : undefined);
  });
  useEffect(() => {
    if (at !== cursor) setCursor(at);
  }, [at, cursor, setCursor]);
  useEffect(onRows, [found, onRows]);
  const stand = useCallback((line: number, id: number | null) => setCursor({ line, id }), [setCursor]);
  const columns = useMemo<ColumnDef<Row>[]>(
    () =>
      state.columns.map((column) => {
        const look = lookOf(column);
        return { id: column, header: look.title, size: look.width, minSize: 48 };
      }),
    [state.columns],
  );
  const sorting: SortingState = state.sort.map(({ column, descending }) => ({ id: column, desc: descending }));
  // The table knows the columns alone: rows come in pages, and a model of each of them at each step of the wheel is what
  // made scrolling stumble.
  const table = useReactTable({
    data: NO_ROWS,
    columns,
    autoResetAll: false,
    state: { sorting },
    manualSorting: true,
    columnResizeMode: "onChange",
    getCoreRowModel: getCoreRowModel(),
  });
  const sizes = table.getState().columnSizing;
  const cells = useMemo(() => {
    const shown = table
      .getVisibleLeafColumns()
      .map((column) => ({ id: column.id, look: lookOf(column.id), width: column.getSize() }));
    const pins = pinnedAt(shown, CHECK);
    return shown.map((cell, index) => ({ ...cell, left: pins[index] }));
    // eslint-disable-next-line react-hooks/exhaustive-deps -- what the table says of its columns follows from these
  }, [table, columns, sizes]);
  // Its lines lie anywhere in the body, so it has no width of their cells by itself.
  const width = cells.reduce((sum, cell) => sum + cell.width, CHECK);
  return (
    <div
      className={styles.frame}
      ref={frame}
      onScroll={markAside}
      role="grid"
      aria-rowcount={shape.length + 1}
      aria-label="Experiments"
      tabIndex={0}
    >
      <div className={styles.head} role="row">
        <div className={clsx(styles.cell, styles.pinned)} role="columnheader" style={cellStyle(CHECK, 0)}>
          <span className={typography.visuallyHidden}>Selected</span>
        </div>
        {table.getFlatHeaders().map((header, index) => (
          <HeadCell
            key={header.id}
            header={header}
            left={cells[index]?.left}
            place={state.sort.findIndex((each) => each.column === header.id)}
            count={state.sort.length}
            onSort={props.onSort}
          />
        ))}
      </div>
      <div className={styles.body} role="rowgroup" style={{ height: virtual.getTotalSize(), width }}>
        {items.map((item) => {
          const line = shape.lineAt(item.index);
          if (line === null) return null;
          if (line.kind === "group") {
            return (
              <div key={item.key} className={clsx(styles.row, styles.group)} role="row" style={{ top: item.start }}>
                <div role="gridcell">
                  <button
                    type="button"
                    className={layout.sortButton}
                    aria-expanded={line.open}
                    onClick={() => props.onGroup(line.section.key)}
                  >
                    <Icon name={line.open ? "down" : "right"} /> {escapeControl(line.section.title ?? "")}{" "}
                    <span className={typography.soft}>{line.section.count}</span>
                  </button>
                </div>
              </div>
            );
          }
          const row = found.get(item.index);
          return (
            <Line
              key={item.key}
              line={item.index}
              row={row}
              cells={cells}
              top={item.start}
              isCursor={item.index === at.line}
              isSelected={row !== undefined && selection.has(row.id)}
              toggle={selection.toggle}
              stand={stand}
              addFilter={addFilter}
            />
          );
        })}
      </div>
    </div>
  );
}

interface LineProps {
  line: number;
  /** Undefined while it is on its way. */
  row: Row | undefined;
  cells: readonly { id: string; look: ColumnLook; width: number; left: number | undefined }[];
  top: number;
  isCursor: boolean;
  isSelected: boolean;
  toggle: (id: number) => void;
  stand: (line: number, id: number | null) => void;
  addFilter: (column: string, value: string) => void;
}

/** Drawn again only where something on it is another: most lines stay as the list moves by. */
const Line = memo(function Line({ line, row, cells, top, isCursor, isSelected, toggle, stand, addFilter }: LineProps) {
  return (
    <div
      className={clsx(styles.row, isCursor && styles.cursor)}
      data-cursor={isCursor || undefined}
      role="row"
      aria-rowindex={line + 2}
      aria-selected={row ? isSelected : undefined}
      style={{ top }}
      onClick={() => stand(line, row?.id ?? null)}
    >
      <div className={clsx(styles.cell, styles.pinned)} role="gridcell" style={cellStyle(CHECK, 0)}>
        {row && (
          <input
            type="checkbox"
            aria-label={`Select experiment ${row.id}`}
            checked={isSelected}
            onChange={() => toggle(row.id)}
          />
        )}
      </div>
      {row ? (
        cells.map(({ id, look, width, left }) => (
          <div key={id} className={cellClass(look.number, left)} role="gridcell" style={cellStyle(width, left)}>
            {look.draw(row, addFilter)}
          </div>
        ))
      ) : (
        // One cell for all: hundreds of these are flown past.
        <div className={clsx(styles.cell, typography.soft)} role="gridcell">
          …
        </div>
      )}
    </div>
  );
});

/** Cells are pinned only where the list was scrolled aside: to look after each of them costs a part of every frame. */
function markAside({ currentTarget: frame }: UIEvent<HTMLElement>): void {
  frame.toggleAttribute("data-aside", frame.scrollLeft > 0);
}

function cellStyle(width: number, left: number | undefined): CSSProperties {
  return { width, "--pinned-at": left === undefined ? undefined : `${left}px` } as CSSProperties;
}

function cellClass(isNumber: boolean | undefined, left: number | undefined): string {
  return clsx(styles.cell, isNumber && styles.number, left !== undefined && styles.pinned);
}

interface HeadProps {
  header: Header<Row, unknown>;
  left: number | undefined;
  /** Among the columns that the list is sorted by; -1 for none. */
  place: number;
  count: number;
  onSort: (column: string, add: boolean) => void;
}

function HeadCell({ header, left, place, count, onSort }: HeadProps) {
  const sorted = header.column.getIsSorted();
  const title = flexRender(header.column.columnDef.header, header.getContext());
  if (lookOf(header.id).computed) {
    return (
      <div className={cellClass(false, left)} role="columnheader" style={cellStyle(header.getSize(), left)}>
        <span title="The list cannot be sorted by this">{title}</span>
        <div
          className={styles.resizer}
          onMouseDown={header.getResizeHandler()}
          onTouchStart={header.getResizeHandler()}
        />
      </div>
    );
  }
  return (
    <div
      className={cellClass(false, left)}
      role="columnheader"
      style={cellStyle(header.getSize(), left)}
      aria-sort={sorted === "desc" ? "descending" : sorted === "asc" ? "ascending" : "none"}
    >
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
      <div
        className={styles.resizer}
        onMouseDown={header.getResizeHandler()}
        onTouchStart={header.getResizeHandler()}
      />
    </div>
  );
}
