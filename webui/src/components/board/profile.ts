const PROFILER = /^system_|^profiler|^(cpu|gpu|memory|disk|network)$/;

/** Whether a group of metrics tells of the machine and not of the model. */
export function isProfile(group: string): boolean {
  return PROFILER.test(group);
}
