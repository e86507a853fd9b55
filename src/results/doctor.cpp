// SPDX-License-Identifier: Apache-2.0
#include "results/doctor.h"

namespace kiln::results {

template <class Fields>
static void describe(Fields& field, DoctorArea& area) {
  field("name", area.name);
  field("verdict", area.verdict);
  field("summary", area.summary);
}

template <class Fields>
static void describe(Fields& field, DoctorCheck& check) {
  field("number", check.number);
  field("name", check.name);
  field("area", check.area);
  field("verdict", check.verdict);
  field("reason", check.reason);
  field("fix", check.fix);
  field("fixes_itself", check.fixes_itself);
}

template <class Fields>
static void describe(Fields& field, DoctorReport& report) {
  field("verdict", report.verdict);
  field("areas", report.areas);
  field("checks", report.checks);
  field("facts", report.facts);
}

Json to_json(const DoctorReport& report) { return write(report); }

}  // namespace kiln::results
