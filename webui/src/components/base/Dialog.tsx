import { lazy } from "@/app/lazy";
import type { DialogProps } from "./DialogWindow";
import typography from "@/styles/typography.module.css";

export const DialogWindow = lazy<DialogProps>(
  () => import("./DialogWindow"),
  ({ title }) => <div role="dialog" aria-label={title} aria-busy="true" className={typography.visuallyHidden} />,
);

/** Over the page, which rests meanwhile: also while what draws it is on its way, so that no key acts on the page behind. */
export function Dialog(props: DialogProps) {
  return props.open ? <DialogWindow {...props} /> : null;
}
