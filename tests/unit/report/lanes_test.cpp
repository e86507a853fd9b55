// SPDX-License-Identifier: Apache-2.0
// Does the picture of a warp's access show what its lanes touch, and nothing twice?
#include "report/charts/lanes.h"

#include <gmock/gmock.h>

#include "count_of.h"

namespace kiln::report {
namespace {

using results::LaneAccess;
using testing::HasSubstr;
using testing::Not;

LaneAccess warp_access(std::string space, int64_t first, int64_t step, int64_t bytes) {
  LaneAccess out{"load", std::move(space), "x", 7, bytes, 32, {}};
  for (int64_t lane = 0; lane < 32; ++lane) out.lanes.push_back({lane, first + lane * step});
  return out;
}

TEST(Lanes, SectorsAreCountedOnce) {
  EXPECT_EQ(lanes_text(warp_access("global", 0, 4, 4)),
            "line 7: load of 4 bytes per lane, 32 lanes, 4 sectors, 128 of 128 bytes used");
  EXPECT_EQ(lanes_text(warp_access("global", 16, 4, 4)),
            "line 7: load of 4 bytes per lane, 32 lanes, 5 sectors, 128 of 160 bytes used");
  EXPECT_EQ(lanes_text(warp_access("global", -4, 0, 4)),
            "line 7: load of 4 bytes per lane, 32 lanes, 1 sectors, 4 of 32 bytes used");
}

TEST(Lanes, ALineFromEveryLane) {
  for (const char* space : {"global", "shared"}) {
    const std::string picture = lanes_picture(warp_access(space, 0, 128, 4));
    EXPECT_EQ(count_of(picture, "<line "), 32u);
    EXPECT_THAT(picture, HasSubstr("aria-label=\"line 7: load"));
  }
}

TEST(Lanes, BanksHaveTheNumberOfWordsThatAreWanted) {
  const std::string conflict = lanes_picture(warp_access("shared", 0, 128, 4));
  EXPECT_EQ(count_of(conflict, "#f3c9b5"), 1u);  // bank 0, wanted by all
  EXPECT_THAT(conflict, HasSubstr(">32</text>"));
  EXPECT_EQ(count_of(lanes_picture(warp_access("shared", 0, 4, 4)), "#f3c9b5"), 0u);
}

TEST(Lanes, NoLaneAndHostileNames) {
  LaneAccess none{"load", "global", "<script>", 1, 4, 0, {}};
  const std::string picture = lanes_picture(none);
  EXPECT_THAT(picture, Not(HasSubstr("<script>")));
  EXPECT_THAT(picture, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace kiln::report
