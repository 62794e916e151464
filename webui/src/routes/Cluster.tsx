export function Component() {
  return <main>Cluster</main>;
}
