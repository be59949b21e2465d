// fedsmooth: one program, one sub-command per verb.
#pragma once

namespace fedsmooth::cli {

/// Runs the command line and returns its exit status: 0 done; 2 the user's mistake; 1 a bug; 130
/// interrupted, with the state saved. Made for a process of its own: it takes over signals,
/// standard streams and settings of the memory allocator, and may end the process.
int run_program(int argc, char** argv);

}  // namespace fedsmooth::cli
