import { type ReactNode, useState } from "react";
import { lazy } from "@/app/lazy";
import { PlainTrigger } from "./PlainTrigger";

export interface MenuItem {
  title: string;
  run: () => void;
  why?: string | undefined;
  danger?: boolean;
  keys?: string;
  /** What it does, in a few words. */
  note?: string;
}

export interface MenuProps {
  label: string;
  items: readonly MenuItem[];
  children: ReactNode;
}

export const MenuList = lazy<MenuProps>(
  () => import("./MenuList"),
  ({ label, children }) => (
    <PlainTrigger label={label} popup="menu">
      {children}
    </PlainTrigger>
  ),
);

/** A button that opens a list of things to do. */
export function Menu(props: MenuProps) {
  const [wanted, setWanted] = useState(false);
  if (wanted) return <MenuList {...props} />;
  return (
    <PlainTrigger label={props.label} popup="menu" onPress={() => setWanted(true)}>
      {props.children}
    </PlainTrigger>
  );
}
