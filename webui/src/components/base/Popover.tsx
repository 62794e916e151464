import { lazy, type ReactNode } from "react";
import { OpensLater } from "./OpensLater";

export interface PopoverProps {
  label: string;
  trigger: ReactNode;
  children: ReactNode;
}

const PopoverPanel = lazy(() => import("./PopoverPanel"));

/** A button with a small panel of its own. */
export function Popover(props: PopoverProps) {
  return (
    <OpensLater label={props.label} popup="dialog" trigger={props.trigger}>
      <PopoverPanel {...props} />
    </OpensLater>
  );
}
