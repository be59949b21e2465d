// A round of the GPU's executor beside one of the reference.
#pragma once

#include <gtest/gtest.h>

#include "fedsmooth/engine/cuda/batched_executor.h"
#include "fedsmooth/engine/reference/reference_passes.h"
#include "fedsmooth/engine/threaded_executor.h"
#include "tests/engine/cuda/rounds.h"

namespace fedsmooth {

struct ComparedRounds {
  RoundResult found, expected;
};

/// Runs a round of three clients on the GPU and by the reference. Expects as many steps, and
/// differences of the trained weights and of the running statistics below these bounds, see
/// difference().
inline ComparedRounds compare_rounds(const LocalTask& task, const Weights& global,
                                     Precision precision, double weights, double statistics) {
  ThreadedExecutor serial(3, reference_passes);
  BatchedExecutor batched(precision);
  ComparedRounds rounds{run_round(batched, {task, global, cohort_of(3), 4}),
                        run_round(serial, {task, global, cohort_of(3), 4})};
  const Weights a = rounds.found.sum.average(global, parameters(task.network)),
                b = rounds.expected.sum.average(global, parameters(task.network));
  EXPECT_LT(difference(task.network, a, b, global, true), weights);
  EXPECT_LT(difference(task.network, a, b, global, false), statistics);
  EXPECT_EQ(rounds.found.telemetry.steps, rounds.expected.telemetry.steps);
  return rounds;
}

}  // namespace fedsmooth
