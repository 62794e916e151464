export function Component() {
  return <main>Trial</main>;
}
