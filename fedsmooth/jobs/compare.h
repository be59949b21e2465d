// Compares two tables of certificates on the images that both have, and may write a page about it.
#pragma once

#include <string>

#include "fedsmooth/jobs/load_run.h"
#include "fedsmooth/report/paired.h"

namespace fedsmooth::jobs {

struct CompareArguments {
  std::string a, b;  // run folder or table, also a published one; NAME=PATH for another name
  std::string out;   // page to write (.html); empty: none
  TableOptions tables;
};

/// Compares two tables and writes the page if `out` names one. Throws an Error if no image is in
/// both tables or if a label differs.
ComparedRuns compare(const CompareArguments& arguments);

}  // namespace fedsmooth::jobs
