// How an objective moves each noise by itself, by unit steps up a cross entropy.
#pragma once

#include <cstdint>

namespace fedsmooth {

struct NoiseAscent {
  enum class Kind {
    kTeacher,     // target: the teacher's votes; stays in a ball, keeps the noise's moments
    kUntilWrong,  // target: the label; keeps the noise's length, until its copy is answered wrongly
  };
  Kind kind = Kind::kTeacher;
  int64_t steps = 0;  // 0: noises stay as they were drawn
  double step_size = 0;

  static constexpr double kRadius = 1;  // of the teacher's ball, in l2
};

}  // namespace fedsmooth
