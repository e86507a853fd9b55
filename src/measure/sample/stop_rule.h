// SPDX-License-Identifier: Apache-2.0
// When is a measurement long enough, and when is the machine warm?
#pragma once

#include "measure/sample/statistics.h"

namespace kiln::measure {

// Seconds unless the name says otherwise. The defaults are the method's: docs/design/measuring.md
// gives the reasons.
struct Patience {
  double min_warm_up_s = 0.2, max_warm_up_s = 2.0;
  int64_t min_samples = 20;
  double min_time_s = 0.5;  // of GPU time: the call and what goes with it (the L2 flush)
  double max_time_s = 15.0;
  double precision = 0.005;  // half of the 95 % interval of the median, relative
};

enum class Progress { More, Converged, NotConverged };

// Converged: the interval is within the precision, or there are two modes, which no number of
// samples brings together. `ordered` is sorted; `busy_s` of the device, `elapsed_s` of the wall.
Progress progress(Samples ordered, double busy_s, double elapsed_s, const Patience& patience);

// Warm: long enough, and the last window's median within 2 % of the one before; or the most time is
// over.
bool is_warm(Samples in_order, double elapsed_s, const Patience& patience);

}  // namespace kiln::measure
