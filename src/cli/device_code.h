// SPDX-License-Identifier: Apache-2.0
// How does a .cu become its device code alone, without the extension around it?
#pragma once

#include "build/plan/request.h"
#include "cli/command.h"

namespace kiln::cli {

struct DeviceCode {
  std::filesystem::path fatbin;  // in a folder of its own, which the caller removes
  std::filesystem::path folder;
  std::string source;
};

// The flags are those that `kiln build` would use; a source that includes torch's headers gets
// their folders.
Result<DeviceCode> compile_device_code(Context& context, build::Request request);

}  // namespace kiln::cli
