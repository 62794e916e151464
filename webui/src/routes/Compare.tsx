export function Component() {
  return <main>Compare</main>;
}
