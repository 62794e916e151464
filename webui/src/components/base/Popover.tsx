import { useState } from "react";
import { lazy } from "./lazy";
import { PlainTrigger } from "./PlainTrigger";
import type { PopoverProps } from "./PopoverPanel";

export const PopoverPanel = lazy<PopoverProps>(
  () => import("./PopoverPanel"),
  ({ label, trigger }) => (
    <PlainTrigger label={label} popup="dialog">
      {trigger}
    </PlainTrigger>
  ),
);

/** A button with a small panel. */
export function Popover(props: PopoverProps) {
  const [wanted, setWanted] = useState(false);
  if (wanted) return <PopoverPanel {...props} />;
  return (
    <PlainTrigger label={props.label} popup="dialog" onPress={() => setWanted(true)}>
      {props.trigger}
    </PlainTrigger>
  );
}
