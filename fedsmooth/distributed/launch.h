// How this process was started: alone, or by mpirun or srun as one of several.
#pragma once

namespace fedsmooth {

/// How many processes the MPI launcher started together; 0 if there was none.
int launched_processes();

}  // namespace fedsmooth
