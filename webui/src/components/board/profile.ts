const PROFILER = /^system_|^profiler|^(cpu|gpu|memory|disk|network)$/;

/** Returns true if a group of metrics describes the machine, not the model. */
export function isProfile(group: string): boolean {
  return PROFILER.test(group);
}
