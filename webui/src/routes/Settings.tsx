import { useContext, useState, useSyncExternalStore } from "react";
import { isTimeZone, type Preferences, setPreferences, usePreferences } from "@/browser/preferences";
import { useSession } from "@/hooks/useSession";
import { duration } from "@/format/duration";
import { usePageTitle } from "@/hooks/usePageTitle";
import { Actions } from "@/keyboard/actions";
import { KeyCaps } from "@/keyboard/KeyCaps";
import { clockDifference } from "@/live/serverClock";
import helpDialogStyles from "@/keyboard/HelpDialog.module.css";
import layout from "@/styles/layout.module.css";
import typography from "@/styles/typography.module.css";

const THEMES: Preferences["theme"][] = ["system", "light", "dark"];
const DENSITIES: Preferences["density"][] = ["comfortable", "compact"];

/** The page of this browser's preferences. */
export function Component() {
  usePageTitle("Settings");
  const session = useSession();
  const preferences = usePreferences();
  const registry = useContext(Actions);
  const actions = useSyncExternalStore(registry.subscribe, registry.all);
  const [zone, setZone] = useState(preferences.timeZone);
  const difference = clockDifference();
  return (
    <main>
      <h1>Settings</h1>
      <div className={layout.cards}>
        <section className={layout.card} aria-label="Appearance">
          <h2>Appearance</h2>
          <Choice
            name="theme"
            title="Theme"
            choices={THEMES}
            value={preferences.theme}
            onChoose={(theme) => setPreferences({ theme })}
          />
          <Choice
            name="density"
            title="Density"
            choices={DENSITIES}
            value={preferences.density}
            onChoose={(density) => setPreferences({ density })}
          />
          <label className={layout.field}>
            <span>Time zone</span>
            <input
              list="zones"
              value={zone}
              onChange={(event) => {
                setZone(event.target.value);
                if (isTimeZone(event.target.value)) setPreferences({ timeZone: event.target.value });
              }}
              aria-invalid={!isTimeZone(zone)}
              spellCheck={false}
            />
            {!isTimeZone(zone) && (
              <span className={typography.problem}>
                Unknown time zone. Use local, UTC or a name such as Europe/Paris.
              </span>
            )}
          </label>
          <datalist id="zones">
            {["local", "UTC", ...Intl.supportedValuesOf("timeZone")].map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
          <p className={typography.hint}>Stored in this browser.</p>
        </section>
        <section className={layout.card} aria-label="This cluster">
          <h2>This cluster</h2>
          <dl className={typography.facts}>
            <dt>Name</dt>
            <dd>{session.clusterName || "no name"}</dd>
            <dt>Version</dt>
            <dd>{session.version}</dd>
            <dt>Page</dt>
            <dd>{session.build || "in development"}</dd>
            <dt>Signed in as</dt>
            <dd>
              {session.user.username}
              {session.user.admin && " (admin)"}
            </dd>
            <dt>Clock</dt>
            <dd>
              {Math.abs(difference) < 5_000
                ? "This computer's clock agrees with the master's"
                : `This computer's clock is ${duration(Math.abs(difference))} ${difference > 0 ? "behind" : "ahead of"} the master's. All times on this page are the master's`}
            </dd>
          </dl>
        </section>
        <section className={layout.card} aria-label="Keyboard shortcuts">
          <h2>Keyboard shortcuts</h2>
          <dl className={helpDialogStyles.list}>
            {actions
              .filter((action) => action.keys)
              .map((action) => (
                <div key={action.id}>
                  <dt>{action.title}</dt>
                  <dd>
                    <KeyCaps keys={action.keys ?? ""} />
                  </dd>
                </div>
              ))}
          </dl>
          <p className={typography.hint}>Press ? on a page for its own shortcuts.</p>
        </section>
      </div>
    </main>
  );
}

interface ChoiceProps<T extends string> {
  name: string;
  title: string;
  choices: readonly T[];
  value: T;
  onChoose: (value: T) => void;
}

function Choice<T extends string>({ name, title, choices, value, onChoose }: ChoiceProps<T>) {
  return (
    <fieldset className={layout.row}>
      <legend>{title}</legend>
      {choices.map((choice) => (
        <label key={choice}>
          <input type="radio" name={name} checked={choice === value} onChange={() => onChoose(choice)} /> {choice}
        </label>
      ))}
    </fieldset>
  );
}
