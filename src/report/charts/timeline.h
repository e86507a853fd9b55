// SPDX-License-Identifier: Apache-2.0
// How is what happened over time drawn? One picture for builds and profiles, with the same ticks,
// buttons, keys and mouse: look/timeline.js.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::report {

struct TimeSpan {
  double begin_us = 0, us = 0;
  double top = 0, height = 0;  // below the ticks, in pixels
  std::string fill;            // a colour or var(--s1)
  std::string name, facts;     // facts: for a reader who points at it
  bool labelled = true;        // its name is shown in it where there is room
};

struct LaneName {
  std::string name;
  double top = 0;
};

// `what` names the picture for those who do not see it.
std::string timeline_picture(const std::vector<TimeSpan>& spans, const std::vector<LaneName>& lanes,
                             std::string_view what);

}  // namespace kiln::report
