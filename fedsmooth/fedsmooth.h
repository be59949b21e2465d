// The public API. Each job (namespace jobs) does the work of one command, without a terminal: it
// reads and writes run folders and tables, locks them, and checks that a classifier is a function
// before it counts votes. The other headers load a model, count its votes and issue one
// certificate.
//
// A mistake of the user is thrown as a fedsmooth::Error with a message of one line, a defect of the
// library as a Bug. A job throws Interrupted, which is not a std::exception, if Context::stopped
// ends it.
//
// Threads of one process may run jobs at the same time, each with a Context of its own. On CPU
// cores the results are those of running the jobs one after the other. If two jobs would write the
// same table or run folder, the second throws an Error. Add rows to registries such as
// data_sources() before the first job begins. Jobs of several ranks (Context::ranks) run one at a
// time.
#pragma once

#include "fedsmooth/base/error.h"
#include "fedsmooth/base/version.h"
#include "fedsmooth/config/experiment.h"
#include "fedsmooth/data/data_source.h"
#include "fedsmooth/data/dataset.h"
#include "fedsmooth/engine/samplers.h"
#include "fedsmooth/jobs/against.h"
#include "fedsmooth/jobs/attack.h"
#include "fedsmooth/jobs/certification.h"
#include "fedsmooth/jobs/compare.h"
#include "fedsmooth/jobs/conformal.h"
#include "fedsmooth/jobs/context.h"
#include "fedsmooth/jobs/federation.h"
#include "fedsmooth/jobs/fetch_data.h"
#include "fedsmooth/jobs/load_run.h"
#include "fedsmooth/jobs/merge.h"
#include "fedsmooth/jobs/plot.h"
#include "fedsmooth/jobs/predict.h"
#include "fedsmooth/jobs/recertify.h"
#include "fedsmooth/jobs/report.h"
#include "fedsmooth/jobs/sweep.h"
#include "fedsmooth/jobs/training.h"
#include "fedsmooth/jobs/verify.h"
#include "fedsmooth/model/model.h"
#include "fedsmooth/smoothing/certify.h"
