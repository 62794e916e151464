import { useEffect, useRef } from "react";
import { NavLink, useLocation } from "react-router";
import styles from "./TabLinks.module.css";

export interface TabLink {
  to: string;
  title: string;
  end?: boolean;
}

/** Tabs that are addresses, so that each can be linked to. A change of the tab adds no history entry. */
export function TabLinks({ label, tabs }: { label: string; tabs: readonly TabLink[] }) {
  const bar = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  useEffect(() => {
    // A phone shows only some tabs; rotating it changes which.
    const show = () => {
      const tab = bar.current?.querySelector<HTMLElement>("[aria-current=page]");
      if (bar.current && tab) bar.current.scrollLeft = tab.offsetLeft - (bar.current.clientWidth - tab.offsetWidth) / 2;
    };
    show();
    window.addEventListener("resize", show);
    return () => window.removeEventListener("resize", show);
  }, [pathname]);
  return (
    <nav ref={bar} className={styles.tabs} aria-label={label}>
      {tabs.map((tab) => (
        <NavLink key={tab.to} to={tab.to} end={tab.end ?? false} className={styles.tab} replace preventScrollReset>
          {tab.title}
        </NavLink>
      ))}
    </nav>
  );
}
