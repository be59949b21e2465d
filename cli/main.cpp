#include "cli/program.h"

int main(int argc, char** argv) { return fedsmooth::cli::run_program(argc, argv); }
