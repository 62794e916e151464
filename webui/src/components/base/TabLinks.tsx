import { NavLink } from "react-router";
import styles from "./TabLinks.module.css";

export interface TabLink {
  to: string;
  title: string;
  end?: boolean;
}

/** Tabs that are addresses: each can be linked to and gone back from. */
export function TabLinks({ label, tabs }: { label: string; tabs: readonly TabLink[] }) {
  return (
    <nav className={styles.tabs} aria-label={label}>
      {tabs.map((tab) => (
        <NavLink key={tab.to} to={tab.to} end={tab.end ?? false} className={styles.tab} replace preventScrollReset>
          {tab.title}
        </NavLink>
      ))}
    </nav>
  );
}
