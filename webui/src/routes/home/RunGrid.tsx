import { useVirtualizer } from "@tanstack/react-virtual";
import { type PointerEvent, type RefObject, useEffect, useRef, useState } from "react";
import { usePreferences } from "@/app/preferences";
import type { Row } from "@/services/columns";
import { lookOf } from "./columns";
import type { ListState, Sort } from "./listState";
import { type ListShape, useRows } from "./sections";
import type { Selection } from "./selection";

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

const CHECK = 40;

/** The list. Only what is on the screen exists; rows come in pages. */
export function RunGrid(props: Props) {
  const { state, shape, selection, cursor } = props;
  const compact = usePreferences().density === "compact";
  const frame = useRef<HTMLDivElement>(null);
  const [widths, setWidths] = useState<Record<string, number>>({});
  const height = compact ? 28 : 36;
  const virtual = useVirtualizer({ count: shape.length, getScrollElement: () => frame.current, estimateSize: () => height, overscan: 12 });
  useEffect(() => virtual.measure(), [virtual, height]);
  useEffect(() => {
    if (cursor >= 0) virtual.scrollToIndex(cursor);
  }, [virtual, cursor]);
  const items = virtual.getVirtualItems();
  const rows = useRows(shape, props.asked, items[0]?.index ?? 0, items.at(-1)?.index ?? -1);
  useEffect(() => {
    props.rowAt.current = (line) => rows.get(line);
  });
  const width = (column: string) => widths[column] ?? lookOf(column).width;
  return (
    <div className="grid-frame" ref={frame} role="grid" aria-rowcount={shape.length + 1} aria-label="Experiments" tabIndex={0}>
      <div className="grid-head" role="row">
        <div className="grid-cell" role="columnheader" style={{ width: CHECK }}>
          <span className="visually-hidden">Selected</span>
        </div>
        {state.columns.map((column) => (
          <HeadCell key={column} column={column} sort={state.sort} width={width(column)} onSort={props.onSort} onWidth={(next) => setWidths((now) => ({ ...now, [column]: next }))} />
        ))}
      </div>
      <div className="grid-body" role="rowgroup" style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const line = shape.lineAt(item.index);
          if (line === null) return null;
          if (line.kind === "group") {
            return (
              <div key={item.key} className="grid-row grid-group" role="row" style={{ top: item.start }}>
                <button type="button" className="sort-button" aria-expanded={line.open} onClick={() => props.onGroup(line.section.key)}>
                  <span aria-hidden="true">{line.open ? "▾" : "▸"}</span> {line.section.title} <span className="soft">{line.section.count}</span>
                </button>
              </div>
            );
          }
          const row = rows.get(item.index);
          return (
            <div
              key={item.key}
              className={item.index === cursor ? "grid-row cursor" : "grid-row"}
              role="row"
              aria-rowindex={item.index + 2}
              aria-selected={row ? selection.has(row.id) : undefined}
              style={{ top: item.start }}
              onClick={() => props.setCursor(item.index)}
            >
              <div className="grid-cell" role="gridcell" style={{ width: CHECK }}>
                {row && <input type="checkbox" aria-label={`Select experiment ${row.id}`} checked={selection.has(row.id)} onChange={() => selection.toggle(row.id)} />}
              </div>
              {state.columns.map((column) => (
                <div key={column} className={lookOf(column).number ? "grid-cell number" : "grid-cell"} role="gridcell" style={{ width: width(column) }}>
                  {row ? lookOf(column).draw(row, props.addFilter) : column === "name" ? <span className="soft">…</span> : null}
                </div>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface HeadProps {
  column: string;
  sort: readonly Sort[];
  width: number;
  onSort: (column: string, add: boolean) => void;
  onWidth: (width: number) => void;
}

function HeadCell({ column, sort, width, onSort, onWidth }: HeadProps) {
  const place = sort.findIndex((each) => each.column === column);
  const found = sort[place];
  const drag = (event: PointerEvent<HTMLDivElement>) => {
    const from = event.clientX;
    const target = event.currentTarget;
    target.setPointerCapture(event.pointerId);
    target.onpointermove = (move) => onWidth(Math.max(48, width + move.clientX - from));
    target.onpointerup = () => (target.onpointermove = null);
  };
  return (
    <div className="grid-cell" role="columnheader" style={{ width }} aria-sort={found ? (found.descending ? "descending" : "ascending") : "none"}>
      <button type="button" className="sort-button" title={`Sort by ${column}; with Shift, also by it`} onClick={(event) => onSort(column, event.shiftKey)}>
        <span>{lookOf(column).title}</span>
        {found && (
          <span aria-hidden="true">
            {found.descending ? "↓" : "↑"}
            {sort.length > 1 ? place + 1 : ""}
          </span>
        )}
      </button>
      <div className="resizer" onPointerDown={drag} />
    </div>
  );
}
