import { clsx } from "clsx";
import type { CSSProperties } from "react";
import type { ColumnLook } from "./columns";
import styles from "./RunGrid.module.css";

/** A displayed column. */
export interface GridColumn {
  id: string;
  look: ColumnLook;
  width: number;
  isNumber: boolean;
  /** Sticky offset in pixels; undefined for columns that scroll. */
  left: number | undefined;
}

/** Width of the column of check boxes. */
export const CHECK = 40;
/** The column that takes the free width. */
const FLEXIBLE = "name";

export function cellStyle(width: number, left: number | undefined): CSSProperties {
  return { width, "--pinned-at": left === undefined ? undefined : `${left}px` } as CSSProperties;
}

export function cellClass({ id, isNumber, left }: Pick<GridColumn, "id" | "isNumber" | "left">): string {
  return clsx(
    styles.cell,
    isNumber && styles.number,
    left !== undefined && styles.pinned,
    id === FLEXIBLE && styles.flexible,
  );
}
