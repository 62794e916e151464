/** Shown only where there is nothing older to show. */
export function Loading({ what }: { what: string }) {
  return (
    <div className="loading" role="status">
      loading {what}…
    </div>
  );
}
