import { useEffect } from "react";
import { visible } from "@/format/visible";

export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = `${visible(title)} · Detent`;
  }, [title]);
}
