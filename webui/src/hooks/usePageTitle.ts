import { useEffect } from "react";
import { escapeControl } from "@/format/escapeControl";

export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = `${escapeControl(title)} · Detent`;
  }, [title]);
}
