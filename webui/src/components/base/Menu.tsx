import { lazy, type ReactNode } from "react";
import { OpensLater } from "./OpensLater";

export interface MenuItem {
  title: string;
  run: () => void;
  why?: string | undefined;
  danger?: boolean;
  keys?: string;
}

export interface MenuProps {
  label: string;
  items: readonly MenuItem[];
  children: ReactNode;
}

const MenuList = lazy(() => import("./MenuList"));

/** A button that opens a list of things to do. */
export function Menu(props: MenuProps) {
  return (
    <OpensLater label={props.label} popup="menu" trigger={props.children}>
      <MenuList {...props} />
    </OpensLater>
  );
}
