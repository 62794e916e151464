import { useState } from "react";
import { NavLink, Outlet, useNavigate } from "react-router";
import { ConnectionNote } from "@/components/ConnectionNote";
import { StorageNote } from "@/components/StorageNote";
import { HelpDialog } from "@/keyboard/HelpDialog";
import { useActions } from "@/keyboard/actions";
import { useKeyboard } from "@/keyboard/useKeyboard";
import { signOut } from "@/services/session";
import { Palette } from "./Palette";
import { useSession } from "./session";
import { escapeControl } from "@/format/escapeControl";

const PLACES = [
  { to: "/", title: "Experiments", keys: "g e", sign: "☰" },
  { to: "/cluster", title: "Cluster", keys: "g c", sign: "▦" },
  { to: "/checkpoints", title: "Checkpoints", keys: "g k", sign: "⛁" },
  { to: "/events", title: "Events", keys: "g v", sign: "◷" },
  { to: "/users", title: "Users", keys: "g u", sign: "☺" },
  { to: "/settings", title: "Settings", keys: "g s", sign: "⚙" },
] as const;

/** What is around every page: where one can go, who one is, whether what is shown is current. */
export function Layout() {
  const session = useSession();
  const navigate = useNavigate();
  const [help, setHelp] = useState(false);
  const [palette, setPalette] = useState(false);
  useKeyboard();
  useActions([
    ...PLACES.map((place) => ({ id: `go:${place.to}`, title: `Go to ${place.title}`, keys: place.keys, group: "Go to", run: () => void navigate(place.to) })),
    { id: "help", title: "Show the keys", keys: "?", group: "Page", run: () => setHelp(true) },
    { id: "palette", title: "Find anything", keys: "Mod+K", group: "Page", run: () => setPalette((open) => !open) },
    { id: "sign-out", title: "Sign out", group: "Page", run: () => void signOut() },
  ]);
  return (
    <div className="frame">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <nav className="rail" aria-label="Places">
        <NavLink to="/" className="brand" aria-label="Detent: experiments">
          <img src="mark.svg" alt="" width="26" height="26" />
          <span>{session.clusterName || "Detent"}</span>
        </NavLink>
        {PLACES.map((place) => (
          <NavLink key={place.to} to={place.to} end={place.to === "/"} className="rail-link">
            <span aria-hidden="true">{place.sign}</span> <span className="rail-title">{place.title}</span>
          </NavLink>
        ))}
        <div className="rail-foot">
          <button type="button" className="button button-quiet" onClick={() => setPalette(true)}>
            Find <kbd>Ctrl K</kbd>
          </button>
          <button type="button" className="button button-quiet" onClick={() => setHelp(true)}>
            Keys <kbd>?</kbd>
          </button>
          <button type="button" className="button button-quiet" onClick={() => void signOut()} title={`Signed in as ${session.user.username}`}>
            Sign out {escapeControl(session.user.username)}
          </button>
        </div>
      </nav>
      <div className="content" id="content" tabIndex={-1}>
        <ConnectionNote />
        <StorageNote />
        <Outlet />
      </div>
      <HelpDialog open={help} onClose={() => setHelp(false)} />
      {palette && <Palette onClose={() => setPalette(false)} />}
    </div>
  );
}
