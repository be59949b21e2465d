#include "fedsmooth/distributed/launch.h"

#include <initializer_list>

#include <cstdlib>

namespace fedsmooth {

int launched_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* size = std::getenv(name)) return std::atoi(size);
  }
  // srun --mpi=pmix gives the number in a variable of its own.
  if (std::getenv("PMIX_RANK") == nullptr) return 0;
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return tasks == nullptr ? 1 : std::atoi(tasks);
}

}  // namespace fedsmooth
