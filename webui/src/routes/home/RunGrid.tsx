import { clsx } from "clsx";
import { type ColumnDef, getCoreRowModel, type SortingState, useReactTable } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type RefObject, type UIEvent, useCallback, useEffect, useLayoutEffect, useMemo, useRef } from "react";
import { usePreferences } from "@/browser/preferences";
import type { Row } from "@/services/columns";
import { figureColumns, lookOf } from "./columns";
import { columnSizes, setColumnSizes, useColumnSizes } from "./columnSizes";
import { type Cursor, followed } from "./cursor";
import { CHECK, type GridColumn } from "./gridCell";
import type { ListState } from "./listState";
import { pinnedAt } from "./pinned";
import { RunGridHead, type SelectedPart } from "./RunGridHead";
import { RunGridLine } from "./RunGridLine";
import { type ListShape, useRows } from "./sections";
import type { Selection } from "./selection";
import { type ShownList, useRangePick } from "./useRangePick";
import { escapeControl } from "@/format/escapeControl";
import { Icon } from "@/components/base/Icon";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";
import styles from "./RunGrid.module.css";

/** The row on a line of the screen; undefined if there is none. */
export type RowAt = (line: number) => Row | "on its way" | undefined;

interface Props {
  state: ListState;
  shape: ListShape;
  asked: readonly string[];
  selection: Selection;
  selected: SelectedPart;
  onSelectAll: () => void;
  open: (id: number, inNewTab: boolean) => void;
  cursor: Cursor;
  setCursor: (cursor: Cursor) => void;
  onSort: (column: string, add: boolean) => void;
  onGroup: (key: string) => void;
  addFilter: (column: string, value: string) => void;
  /** Provides the row on a line, for keyboard actions. */
  rowAt: RefObject<RowAt>;
  /** Called when other rows are displayed. */
  onRows: () => void;
}

const NO_ROWS: Row[] = [];

/** The list of experiments. Only visible rows are rendered; rows are loaded in pages. */
export function RunGrid(props: Props) {
  const { state, shape, asked, selection, cursor, setCursor, onRows, addFilter } = props;
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
  const found = useRows(shape, asked, items[0]?.index ?? 0, items.at(-1)?.index ?? -1, virtual.isScrolling);
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
  const shown = useRef<ShownList>({ shape, asked, rows: found });
  useLayoutEffect(() => {
    shown.current = { shape, asked, rows: found };
  });
  const pick = useRangePick(shown, selection);
  const moveCursor = useCallback((line: number, id: number | null) => setCursor({ line, id }), [setCursor]);
  const columns = useMemo<ColumnDef<Row>[]>(
    () =>
      state.columns.map((column) => {
        const look = lookOf(column);
        return { id: column, header: look.title, size: look.width, minSize: 48 };
      }),
    [state.columns],
  );
  const sorting: SortingState = state.sort.map(({ column, descending }) => ({ id: column, desc: descending }));
  const sizes = useColumnSizes();
  // The table knows only the columns. Rows are loaded in pages, and a row model for each scroll event would make
  // scrolling slow.
  const table = useReactTable({
    data: NO_ROWS,
    columns,
    autoResetAll: false,
    state: { sorting, columnSizing: sizes },
    manualSorting: true,
    columnResizeMode: "onChange",
    onColumnSizingChange: (next) => setColumnSizes(typeof next === "function" ? next(columnSizes()) : next),
    getCoreRowModel: getCoreRowModel(),
  });
  const figures = [...figureColumns(state.columns, found.values())].join("\n");
  const cells = useMemo<GridColumn[]>(() => {
    const numbers = new Set(figures.split("\n"));
    const visible = table
      .getVisibleLeafColumns()
      .map(({ id, getSize }) => ({ id, look: lookOf(id), width: getSize(), isNumber: numbers.has(id) }));
    const pins = pinnedAt(visible, CHECK);
    return visible.map((cell, index) => ({ ...cell, left: pins[index] }));
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the results of the table for its columns depend on these
  }, [table, columns, sizes, figures]);
  // Its rows are positioned absolutely, so it does not get a width from their cells.
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
      <RunGridHead
        headers={table.getFlatHeaders()}
        columns={cells}
        sort={state.sort}
        onSort={props.onSort}
        selected={props.selected}
        onSelectAll={props.onSelectAll}
      />
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
            <RunGridLine
              key={item.key}
              line={item.index}
              row={row}
              columns={cells}
              top={item.start}
              isCursor={item.index === at.line}
              isSelected={row !== undefined && selection.has(row.id)}
              pick={pick}
              moveCursor={moveCursor}
              open={props.open}
              addFilter={addFilter}
            />
          );
        })}
      </div>
    </div>
  );
}

/**
 * Cells are sticky only while the list is scrolled sideways, since checking each of them takes a part of every frame.
 */
function markAside({ currentTarget: frame }: UIEvent<HTMLElement>): void {
  frame.toggleAttribute("data-aside", frame.scrollLeft > 0);
}
