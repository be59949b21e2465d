// Whether this process was started alone, or by mpirun or srun as one of several.
#pragma once

namespace fedsmooth {

/// Returns the number of processes that the MPI launcher started together; 0 without a launcher.
int launched_processes();

}  // namespace fedsmooth
