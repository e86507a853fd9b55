// SPDX-License-Identifier: Apache-2.0
// How long does this machine take to compile a small kernel, cold and then from the cache?
#include <fmt/format.h>

#include "build/build.h"
#include "doctor/gather.h"

namespace kiln::doctor {

namespace {

using sys::fs::path;

constexpr const char* kKernel = R"CU(#include <kiln/op.h>

__global__ void doctor_kernel(kiln::View<const float, 1> in, kiln::View<float, 1> out) {
  int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = in(i) + 1;
}

kiln::Tensor plus_one(const kiln::Tensor& in) {
  kiln::Tensor out = kiln::empty_like(in);
  doctor_kernel<<<kiln::blocks_for(out.numel(), 256), 256, 0, kiln::stream(in)>>>(
      in.flat<const float>(), out.flat<float>());
  return out;
}
KILN_OP(plus_one, "in").fake("like(in)");
)CU";

Result<double> compile_once(const Outside& outside, const sys::Environment& env, const path& folder,
                            const char* to) {
  build::Request request;
  request.targets = {(folder / "plus_one.cu").string()};
  request.directory = folder;
  request.build_dir = (folder / to).string();
  build::World world{outside.files, outside.processes, env, {}, {}, {}};
  TRY(build::Outcome outcome, build::build(request, world));
  return outcome.seconds;
}

Status compile_twice(const Outside& outside, const path& folder, TimedCompile& timed) {
  sys::Environment env = outside.env;
  env.set("KILN_CACHE_DIR", (folder / "cache").string());
  env.unset("KILN_CACHE_REMOTE");
  CHECK_OK(outside.files.write(folder / "plus_one.cu", kKernel, sys::Durable::No));
  TRY(timed.cold_s, compile_once(outside, env, folder, "cold"));
  TRY(timed.cached_s, compile_once(outside, env, folder, "cached"));
  return {};
}

}  // namespace

void time_compile(const Outside& outside, Facts& facts) {
  TimedCompile timed;
  timed.ran = true;
  auto folder = sys::make_temporary_folder("kiln-doctor");
  Status done = folder ? compile_twice(outside, *folder, timed) : Status(folder.error());
  if (!done) {
    std::string why = done.error().why;
    timed.trouble = fmt::format("a small kernel does not compile: {}: {}", done.error().what,
                                why.substr(0, why.find('\n')));
    timed.trouble_fix = done.error().fix.empty() ? "kiln doctor -v" : done.error().fix;
  }
  if (folder) (void)outside.files.remove(*folder);
  facts.timed = std::move(timed);
}

}  // namespace kiln::doctor
