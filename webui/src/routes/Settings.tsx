export function Component() {
  return <main>Settings</main>;
}
