export function Component() {
  return <main>Events</main>;
}
