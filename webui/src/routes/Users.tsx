export function Component() {
  return <main>Users</main>;
}
