import { useQueryClient } from "@tanstack/react-query";
import { useApiMutation } from "@/hooks/useApiMutation";
import { editExperiment, type ExperimentChange, experimentQuery } from "@/services/experiments";

/**
 * Changes the name, the notes or the labels of an experiment. `onSaved` is called even if its component is unmounted by
 * then.
 */
export function useEditExperiment(id: number, onSaved?: (change: ExperimentChange) => void) {
  const queries = useQueryClient();
  return useApiMutation({
    mutationFn: (change: ExperimentChange) => editExperiment(id, change),
    onSuccess: (_, change) => {
      // Displayed before the refetch, so that the old text does not reappear for a moment.
      queries.setQueryData(experimentQuery(id).queryKey, (old) => old && { ...old, ...change });
      onSaved?.(change);
    },
    invalidates: [["experiment", String(id)]],
  });
}
