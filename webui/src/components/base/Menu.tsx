import { useState } from "react";
import { lazy } from "./lazy";
import type { MenuProps } from "./MenuList";
import { PlainTrigger } from "./PlainTrigger";

export const MenuList = lazy<MenuProps>(
  () => import("./MenuList"),
  ({ label, children }) => (
    <PlainTrigger label={label} popup="menu">
      {children}
    </PlainTrigger>
  ),
);

/** A button that opens a list of actions. */
export function Menu(props: MenuProps) {
  const [wanted, setWanted] = useState(false);
  if (wanted) return <MenuList {...props} />;
  return (
    <PlainTrigger label={props.label} popup="menu" onPress={() => setWanted(true)}>
      {props.children}
    </PlainTrigger>
  );
}
