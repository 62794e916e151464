import { clsx } from "clsx";
import { useState } from "react";
import { NavLink, Outlet, useLocation, useNavigate } from "react-router";
import { ConnectionNote } from "@/components/ConnectionNote";
import { StorageNote } from "@/components/StorageNote";
import { HelpDialog } from "@/keyboard/HelpDialog";
import { useActions } from "@/keyboard/actions";
import { useApiMutation } from "@/hooks/useApiMutation";
import { useKeyboard } from "@/keyboard/useKeyboard";
import { listAddress } from "@/routes/home/lastList";
import { signOut } from "@/services/session";
import { Palette } from "./Palette";
import { useSession } from "@/hooks/useSession";
import { escapeControl } from "@/format/escapeControl";
import { Icon } from "@/components/base/Icon";
import buttonStyles from "@/components/base/Button.module.css";
import styles from "./Layout.module.css";

const PLACES = [
  { to: "/", title: "Experiments", keys: "g e", icon: "list" },
  { to: "/cluster", title: "Cluster", keys: "g c", icon: "grid" },
  { to: "/checkpoints", title: "Checkpoints", keys: "g k", icon: "database" },
  { to: "/events", title: "Events", keys: "g v", icon: "clock" },
  { to: "/users", title: "Users", keys: "g u", icon: "person" },
  { to: "/settings", title: "Settings", keys: "g s", icon: "gear" },
] as const;

/** The frame of every page: navigation, the signed-in user, and notes about the connection. */
export function Layout() {
  const session = useSession();
  const { pathname } = useLocation();
  // On other pages this returns to the last list. On the list it clears the filter.
  const addressOf = (to: string) => (to === "/" && pathname !== "/" ? listAddress() : to);
  const navigate = useNavigate();
  const [help, setHelp] = useState(false);
  const [palette, setPalette] = useState(false);
  const { mutate } = useApiMutation({ mutationFn: () => signOut(), invalidates: [] });
  const leave = () => mutate();
  useKeyboard();
  useActions([
    ...PLACES.map((place) => ({
      id: `go:${place.to}`,
      title: `Go to ${place.title}`,
      keys: place.keys,
      group: "Go to",
      run: () => void navigate(addressOf(place.to)),
    })),
    { id: "go:tasks", title: "Go to tasks", keys: "g t", group: "Go to", run: () => void navigate("/cluster#tasks") },
    { id: "help", title: "Keyboard shortcuts", keys: "?", group: "Page", run: () => setHelp(true) },
    { id: "palette", title: "Search", keys: "Mod+K", group: "Page", run: () => setPalette((open) => !open) },
    { id: "sign-out", title: "Sign out", group: "Page", run: leave },
  ]);
  return (
    <div className={styles.frame}>
      <a className={styles.skip} href="#content">
        Skip to the content
      </a>
      <div className={styles.side}>
        <nav className={styles.rail} aria-label="Main">
          <NavLink to="/" className={styles.brand} aria-label="Detent: experiments">
            <img src="mark.svg" alt="" width="26" height="26" />
            <span>{session.clusterName || "Detent"}</span>
          </NavLink>
          {PLACES.map((place) => (
            <NavLink key={place.to} to={addressOf(place.to)} end={place.to === "/"} className={styles.link}>
              <Icon name={place.icon} /> <span>{place.title}</span>
            </NavLink>
          ))}
        </nav>
        <div className={styles.foot}>
          <button
            type="button"
            className={clsx(buttonStyles.button, buttonStyles.quiet)}
            onClick={() => setPalette(true)}
          >
            Find <kbd>Ctrl K</kbd>
          </button>
          <button
            type="button"
            className={clsx(buttonStyles.button, buttonStyles.quiet, styles.keys)}
            onClick={() => setHelp(true)}
          >
            Shortcuts <kbd>?</kbd>
          </button>
          <a
            className={clsx(buttonStyles.button, buttonStyles.quiet, styles.keys)}
            href="docs/"
            target="_blank"
            rel="noreferrer"
          >
            Documentation
          </a>
          <button
            type="button"
            className={clsx(buttonStyles.button, buttonStyles.quiet)}
            onClick={leave}
            title={`Signed in as ${session.user.username}`}
          >
            Sign out {escapeControl(session.user.username)}
          </button>
        </div>
      </div>
      <div className={styles.content} id="content" tabIndex={-1}>
        <ConnectionNote />
        <StorageNote />
        <Outlet />
      </div>
      <HelpDialog open={help} onClose={() => setHelp(false)} />
      {palette && <Palette onClose={() => setPalette(false)} />}
    </div>
  );
}
