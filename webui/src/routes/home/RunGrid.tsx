import { type ColumnDef, flexRender, getCoreRowModel, type Header, type Row as TableRow, type SortingState, useReactTable } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type RefObject, useEffect, useMemo, useRef } from "react";
import { usePreferences } from "@/app/preferences";
import type { Row } from "@/services/columns";
import { lookOf } from "./columns";
import type { ListState } from "./listState";
import { type ListShape, useRows } from "./sections";
import type { Selection } from "./selection";
import { visible } from "@/format/visible";

interface Props {
  state: ListState;
  shape: ListShape;
  asked: readonly string[];
  selection: Selection;
  cursor: number;
  setCursor: (line: number) => void;
  onSort: (column: string, add: boolean) => void;
  onGroup: (key: string) => void;
  addFilter: (column: string, value: string) => void;
  /** Hands out the row on a line, for what keys do. */
  rowAt: RefObject<(line: number) => Row | undefined>;
}

/** A line of the screen and the experiment on it; undefined while it is on its way. */
interface OnScreen {
  line: number;
  row: Row | undefined;
}

const CHECK = 40;

/** The list. Only what is on the screen exists; rows come in pages. */
export function RunGrid(props: Props) {
  const { state, shape, selection, cursor, addFilter } = props;
  const compact = usePreferences().density === "compact";
  const frame = useRef<HTMLDivElement>(null);
  const height = compact ? 28 : 36;
  const virtual = useVirtualizer({ count: shape.length, getScrollElement: () => frame.current, estimateSize: () => height, overscan: 12 });
  useEffect(() => virtual.measure(), [virtual, height]);
  useEffect(() => {
    if (cursor >= 0) virtual.scrollToIndex(cursor);
  }, [virtual, cursor]);
  const items = virtual.getVirtualItems();
  const found = useRows(shape, props.asked, items[0]?.index ?? 0, items.at(-1)?.index ?? -1);
  useEffect(() => {
    props.rowAt.current = (line) => found.get(line);
  });
  const columns = useMemo<ColumnDef<OnScreen>[]>(
    () =>
      state.columns.map((column) => {
        const look = lookOf(column);
        return {
          id: column,
          header: look.title,
          size: look.width,
          minSize: 48,
          cell: ({ row }) => (row.original.row ? look.draw(row.original.row, addFilter) : column === "name" ? <span className="soft">…</span> : null),
        };
      }),
    [state.columns, addFilter],
  );
  const sorting: SortingState = state.sort.map(({ column, descending }) => ({ id: column, desc: descending }));
  const from = items[0]?.index ?? 0;
  const to = items.at(-1)?.index ?? -1;
  // The table takes other rows for news and draws again: they must be the same while nothing changed.
  const data = useMemo(() => Array.from({ length: to - from + 1 }, (_, index): OnScreen => ({ line: from + index, row: found.get(from + index) })), [from, to, found]);
  const table = useReactTable({
    data,
    columns,
    autoResetAll: false,
    state: { sorting },
    manualSorting: true,
    columnResizeMode: "onChange",
    getCoreRowModel: getCoreRowModel(),
    getRowId: (each) => String(each.line),
  });
  const rows = new Map(table.getRowModel().rows.map((row) => [row.original.line, row]));
  return (
    <div className="grid-frame" ref={frame} role="grid" aria-rowcount={shape.length + 1} aria-label="Experiments" tabIndex={0}>
      <div className="grid-head" role="row">
        <div className="grid-cell" role="columnheader" style={{ width: CHECK }}>
          <span className="visually-hidden">Selected</span>
        </div>
        {table.getFlatHeaders().map((header) => (
          <HeadCell key={header.id} header={header} place={state.sort.findIndex((each) => each.column === header.id)} count={state.sort.length} onSort={props.onSort} />
        ))}
      </div>
      <div className="grid-body" role="rowgroup" style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const line = shape.lineAt(item.index);
          if (line === null) return null;
          if (line.kind === "group") {
            return (
              <div key={item.key} className="grid-row grid-group" role="row" style={{ top: item.start }}>
                <div role="gridcell">
                  <button type="button" className="sort-button" aria-expanded={line.open} onClick={() => props.onGroup(line.section.key)}>
                    <span aria-hidden="true">{line.open ? "▾" : "▸"}</span> {visible(line.section.title ?? "")} <span className="soft">{line.section.count}</span>
                  </button>
                </div>
              </div>
            );
          }
          const row = rows.get(item.index);
          return row ? <Line key={item.key} row={row} top={item.start} isCursor={item.index === cursor} selection={selection} setCursor={props.setCursor} /> : null;
        })}
      </div>
    </div>
  );
}

interface LineProps {
  row: TableRow<OnScreen>;
  top: number;
  isCursor: boolean;
  selection: Selection;
  setCursor: (line: number) => void;
}

function Line({ row, top, isCursor, selection, setCursor }: LineProps) {
  const { line, row: experiment } = row.original;
  return (
    <div
      className={isCursor ? "grid-row cursor" : "grid-row"}
      role="row"
      aria-rowindex={line + 2}
      aria-selected={experiment ? selection.has(experiment.id) : undefined}
      style={{ top }}
      onClick={() => setCursor(line)}
    >
      <div className="grid-cell" role="gridcell" style={{ width: CHECK }}>
        {experiment && <input type="checkbox" aria-label={`Select experiment ${experiment.id}`} checked={selection.has(experiment.id)} onChange={() => selection.toggle(experiment.id)} />}
      </div>
      {row.getVisibleCells().map((cell) => (
        <div key={cell.id} className={lookOf(cell.column.id).number ? "grid-cell number" : "grid-cell"} role="gridcell" style={{ width: cell.column.getSize() }}>
          {flexRender(cell.column.columnDef.cell, cell.getContext())}
        </div>
      ))}
    </div>
  );
}

interface HeadProps {
  header: Header<OnScreen, unknown>;
  /** Among the columns that the list is sorted by; -1 for none. */
  place: number;
  count: number;
  onSort: (column: string, add: boolean) => void;
}

function HeadCell({ header, place, count, onSort }: HeadProps) {
  const sorted = header.column.getIsSorted();
  return (
    <div className="grid-cell" role="columnheader" style={{ width: header.getSize() }} aria-sort={sorted === "desc" ? "descending" : sorted === "asc" ? "ascending" : "none"}>
      <button type="button" className="sort-button" title={`Sort by ${header.id}; with Shift, also by it`} onClick={(event) => onSort(header.id, event.shiftKey)}>
        <span>{flexRender(header.column.columnDef.header, header.getContext())}</span>
        {sorted && (
          <span aria-hidden="true">
            {sorted === "desc" ? "↓" : "↑"}
            {count > 1 ? place + 1 : ""}
          </span>
        )}
      </button>
      <div className="resizer" onMouseDown={header.getResizeHandler()} onTouchStart={header.getResizeHandler()} />
    </div>
  );
}
