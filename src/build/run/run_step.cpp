// SPDX-License-Identifier: Apache-2.0
// How is one step done?
#include "build/run/run_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <future>

#include "base/hash.h"
#include "base/text.h"
#include "build/cache/dependencies.h"
#include "build/cache/depfile.h"
#include "build/cache/key_difference.h"
#include "build/plan/variables.h"
#include "build/run/fat_object.h"
#include "build/run/findings.h"
#include "build/run/preprocessed.h"
#include "sys/clock.h"

namespace kiln::build {

namespace {

using sys::fs::path;

constexpr size_t kMostCandidates = 16;
constexpr std::string_view kLogName = "log";

class Runner {
 public:
  Runner(const Step& step, const StepWorld& world, StepReport& report)
      : step_(step),
        world_(world),
        report_(report),
        hashes_(world.files),
        cache_(Cache::open(world.files, world.env, world.staging / "shared-cache-is-down")) {}

  Result<int> run() {
    report_.key = step_.key;
    report_.what = step_.what;
    report_.kind = name_of(step_.kind);
    report_.begin_ns = sys::wall_ns();
    double begun = sys::now_seconds();
    auto code = run_timed();
    report_.seconds = sys::now_seconds() - begun;
    report_.notes = cache_.notes();
    report_.damaged = cache_.damaged();
    if (code && *code == 0)
      CHECK_OK(world_.files.write(in_obj(step_.key + ".report"), dump(to_json(report_)),
                                  sys::Durable::Scratch));
    return code;
  }

 private:
  bool uses_cache() const { return cache_.usable() && step_.uncached.empty(); }
  path in_obj(const std::string& name) const { return world_.build_dir / "obj" / name; }
  path in_staging(const std::string& name) const { return world_.staging / name; }

  Result<int> run_timed() {
    // The disk's own clock: what changes from here on may have been read before or after.
    CHECK_OK(world_.files.write(in_staging(step_.key + ".begun"), "", sys::Durable::Scratch));
    begun_ns_ = world_.files.state(in_staging(step_.key + ".begun")).ctime_ns;
    describe_basis();
    if (!cache_.usable()) report_.answer = Answer::Off;
    if (!step_.uncached.empty()) {
      report_.answer = Answer::Never;
      report_.why = step_.uncached;
    }
    if (uses_cache() && from_manifest()) return with_findings();
    size_t first = 0;
    if (!step_.preprocessed.empty()) {
      TRY(int code, preprocess());
      if (code != 0) return code;
      first = 1;
      if (uses_cache() && from_content()) return with_findings();
      // 17 of 35 ms that a step costs besides its compilers: what was read is known, and they need
      // it no more.
      reading_ = std::async(std::launch::async, [this] { return collect(); });
    }
    if (step_.kind == StepKind::Fat) CHECK_OK(place_ptx());
    for (size_t i = first; i < step_.commands.size(); ++i) {
      TRY(int code, run_command(step_.commands[i]));
      if (code != 0) return code;
    }
    return finish();
  }

  // ---- keys

  // Everything that is known before the first command, by name: for the key and for people who ask
  // why.
  void describe_basis() {
    Json inputs = Json::object();
    for (const std::string& input : step_.inputs)
      inputs[canonical_path(step_.roots, input)] = hashes_.of((world_.build_dir / input).string());
    Json source = Json::object();
    if (!step_.source.empty()) source[canonical_path(step_.roots, step_.source)] = "";
    Json env = Json::array();
    for (const auto& [name, value] : step_.env)
      if (name != "PATH" && (name != "LD_LIBRARY_PATH" || step_.kind == StepKind::Link))
        env.push_back(name + "=" + value);
    basis_ = {{"kiln", KILN_VERSION_STRING},
              {"kind", name_of(step_.kind)},
              {"commands", key_of_commands(step_, world_.build_dir.string())},
              {"compilers and environment", circumstances()},
              {"inputs", inputs},
              {"source", source},
              {"variables", env},
              {"place", place()}};
  }

  // What the result holds of the folders that it is made in.
  std::string place() const {
    const bool real_paths = step_.roots.empty() && !step_.source.empty();
    // A fat binary holds the PTX with real paths: of the project, and of kiln's headers.
    if (step_.kind == StepKind::Fat) {
      std::string all;
      for (const Root& root : step_.roots) all += root.real + '\n';
      return all;
    }
    // For a debugger: the folder in which the compiler ran.
    return real_paths ? world_.build_dir.string() : "";
  }

  // Each program's hash and each variable by its name.
  Json circumstances() const {
    auto parts = parse_json(step_.circumstances, "compilers");
    return parts && parts->is_object() ? *parts : Json(step_.circumstances);
  }

  // The basis, with what the source was.
  Json remembered() {
    Json parts = basis_;
    for (const auto& item : parts["source"].items()) item.value() = hashes_.of(step_.source);
    return parts;
  }

  // What this step was made of when it was last made here, or, with other flags, in a folder next
  // to this one.
  std::string what_changed() {
    const std::string name = step_.key + ".basis";
    path newest = in_obj(name);
    sys::FileState seen = world_.files.state(newest);
    if (!seen.exists)
      for (const std::string& folder : world_.files.list(world_.build_dir.parent_path())) {
        path beside = world_.build_dir.parent_path() / folder / "obj" / name;
        sys::FileState state = world_.files.state(beside);
        if (!state.is_file() || state.ctime_ns <= seen.ctime_ns) continue;
        newest = beside;
        seen = state;
      }
    auto text = world_.files.read(newest);
    auto former = text ? parse_json(*text, "basis") : Json();
    return former ? what_differs(*former, remembered()) : "";
  }

  std::string key_of(std::string_view use, std::string_view text) const {
    return Hasher().add_field(use).add_field(dump(basis_)).add_field(text).hex();
  }

  // ---- from the cache

  // A manifest holds what the step read each time that it made something else, under the key of
  // that result.
  bool from_manifest() {
    Origin origin;
    manifest_key_ = key_of("manifest 2", step_.reads_source() ? hashes_.of(step_.source) : "");
    auto manifest = cache_.get(manifest_key_, origin);
    if (!manifest || manifest->files.empty()) {
      report_.why = what_changed();
      if (report_.why.empty())
        report_.why = "no entry has this source, these flags and these compilers";
      return false;
    }
    manifest_ = std::move(manifest->files);
    for (const EntryFile& candidate : manifest_) {
      auto record = parse_reads(candidate.content);
      if (!record) continue;
      Collected known{with_real_names(step_.roots, std::move(*record))};
      if (auto difference = first_difference(world_.files, hashes_, known.reads)) {
        report_.why = sentence(*difference);
        continue;
      }
      known.sound = look_at_states(world_.files, begun_ns_, known.reads);
      if (restore(candidate.name, &known)) {
        report_.answer = Answer::Direct;
        return true;
      }
      report_.why = "the entry itself is missing";
    }
    return false;
  }

  bool from_content() {
    auto text = world_.files.read(in_staging(step_.preprocessed));
    if (!text) return false;
    result_key_ = key_of("content", *text);
    if (!restore(result_key_, nullptr)) return false;
    report_.answer = Answer::Content;
    return true;
  }

  // `known` is null where a depfile of this run tells what was read.
  bool restore(const std::string& key, const Collected* known) {
    Origin origin;
    auto entry = cache_.get(key, origin);
    if (!entry) return false;
    std::string log;
    for (const EntryFile& file : entry->files) {
      if (file.name == kLogName) {
        log = file.content;
        continue;
      }
      bool wanted =
          std::find(step_.outputs.begin(), step_.outputs.end(), file.name) != step_.outputs.end();
      if (!wanted || !publish(file.name, file.content)) return false;
    }
    if (entry->files.size() != step_.outputs.size() + 1) return false;
    Collected collected = known ? *known : collect();
    if (!known && is_storable(collected))
      remember_manifest(write_reads(canonical(collected.reads), By::Content), key);
    report_.origin = origin;
    report_.cache_key = key;
    return leave(collected, with_real_paths(step_.roots, log));
  }

  // ---- by the commands

  Result<int> run_command(const Command& command) {
    sys::ProcessSpec spec;
    for (const std::string& word : texts(command)) {
      size_t at = word.find(kStaging);
      spec.arguments.push_back(
          at == std::string::npos
              ? word
              : word.substr(0, at) + (world_.staging / word.substr(at + kStaging.size())).string());
    }
    spec.directory = world_.build_dir;
    sys::Environment env = tool_environment(world_.env);
    for (const auto& [name, value] : step_.env) env.set(name, value);
    spec.env = std::move(env);
    spec.limit_s = step_.limit_s;
    spec.memory_bytes = step_.memory_bytes;
    CommandRun ran{path(spec.arguments[0]).filename().string(), sys::wall_ns(), 0, 0, 0};
    double begun = sys::now_seconds();
    TRY(sys::ProcessResult result, world_.processes.run(spec));
    ran.seconds = sys::now_seconds() - begun;
    ran.cpu_seconds = result.cpu_seconds;
    ran.peak_bytes = result.peak_bytes;
    report_.commands.push_back(ran);
    log_ += result.out;
    if (result.timed_out)
      log_ += fmt::format("{}{} s (--limit)\n", kPastLimitSign, step_.limit_s);
    else if (result.signal == 9)
      log_ += "Killed\n";
    if (result.exit_code != 0)
      CHECK_OK(world_.files.write(in_staging(step_.key + ".log"),
                                  with_real_paths(step_.roots, log_), sys::Durable::Scratch));
    return result.exit_code;
  }

  Result<int> preprocess() {
    TRY(int code, run_command(step_.commands[0]));
    if (code != 0) return code;
    if (step_.roots.empty()) return 0;
    TRY(std::string text, world_.files.read(in_staging(step_.preprocessed)));
    CHECK_OK(world_.files.write(in_staging(step_.preprocessed),
                                with_canonical_markers(step_.roots, text), sys::Durable::Scratch));
    return 0;
  }

  // The engine and people read the paths in PTX; those in machine code stay canonical.
  Status place_ptx() {
    for (const std::string& input : step_.inputs) {
      if (!input.ends_with(".ptx")) continue;
      TRY(std::string text, world_.files.read(world_.build_dir / input));
      CHECK_OK(world_.files.write(in_staging(path(input).filename()),
                                  with_real_files(step_.roots, text), sys::Durable::Scratch));
    }
    return {};
  }

  Result<int> finish() {
    sys::Files& files = world_.files;
    if (step_.kind == StepKind::Fat) {
      TRY(std::string fat, files.read(in_staging(path(step_.key).stem().string() + ".fatbin")));
      CHECK_OK(files.write(in_staging(step_.outputs[0]), fat_object(fat, step_.fat_symbol),
                           sys::Durable::Scratch));
    }
    if (step_.kind == StepKind::Front) {
      TRY(std::string text, files.read(in_staging(step_.outputs[0])));
      CHECK_OK(files.write(in_staging(step_.outputs[0]), without_device_bodies(text),
                           sys::Durable::Scratch));
    }
    if (step_.kind == StepKind::Device) CHECK_OK(forget_staging());
    report_.findings = ptxas_findings(log_);
    TRY(int refused, with_findings());
    if (refused) return refused;
    Collected collected = reading_.valid() ? reading_.get() : collect();
    std::string log = without_findings(log_);
    if (uses_cache() && is_storable(collected))
      store(canonical(collected.reads), with_canonical_paths(step_.roots, log));
    for (const std::string& output : step_.outputs) {
      TRY(std::string content, files.read(in_staging(output)));
      if (!publish(output, content, in_staging(output)))
        return Error{Fault::Environment, fmt::format("cannot write obj/{}", output),
                     "the disk may be full",
                     "free some space, or choose another folder: --build-dir, XDG_CACHE_HOME"};
    }
    // Compilers were given canonical names; people are shown the real ones.
    if (!leave(collected, with_real_paths(step_.roots, log)))
      return Error{Fault::Environment, fmt::format("cannot {}", step_.what),
                   "its log cannot be written",
                   "free some space, or choose another folder: --build-dir, XDG_CACHE_HOME"};
    return 0;
  }

  // 1 when ptxas found something, now or when the entry was made, and that was asked to be an
  // error.
  Result<int> with_findings() {
    if (!step_.findings_fail || report_.findings.empty()) return 0;
    CHECK_OK(world_.files.write(
        in_staging(step_.key + ".log"),
        "error: ptxas findings are errors here\n" + text::join(report_.findings, "\n"),
        sys::Durable::Scratch));
    return 1;
  }

  // cicc writes the path of the stub into the stub: the host's object would be made anew by every
  // run.
  Status forget_staging() {
    for (const std::string& output : step_.outputs) {
      if (!output.ends_with(".stub.c")) continue;
      TRY(std::string text, world_.files.read(in_staging(output)));
      CHECK_OK(world_.files.write(in_staging(output),
                                  text::replace_all(text, world_.staging.string() + "/", ""),
                                  sys::Durable::Scratch));
    }
    return {};
  }

  // The files that a depfile of this run names, without those of the build folder: what other steps
  // made are inputs, known by their content wherever that folder is.
  std::vector<std::string> named_in(const std::string& depfile, bool& missing) {
    std::vector<std::string> files;
    // The staging folder is named as the build was: its path may have links.
    const std::string own_folder = world_.build_dir.string() + "/";
    const std::string own_staging = world_.staging.parent_path().string() + "/";
    auto text = world_.files.read(in_staging(depfile));
    if (!text) {
      missing = true;
      return files;
    }
    for (const std::string& name : parse_depfile(*text)) {
      std::string file = (world_.build_dir / name).lexically_normal().string();
      if (!file.starts_with(own_folder) && !file.starts_with(own_staging))
        files.push_back(std::move(file));
    }
    return files;
  }

  Collected collect() {
    ReadFiles read;
    if (step_.writes_depfile) read.compiled = named_in(step_.key + ".d", read.unknown);
    if (step_.writes_assembler_depfile)
      read.assembled = named_in(step_.key + ".as.d", read.unknown);
    // Besides what it read the assembler names its input, which is gone, and the names of sources
    // in it.
    std::erase_if(read.assembled,
                  [&](const std::string& file) { return !world_.files.state(file).is_file(); });
    return collect_reads(world_.files, hashes_, step_, read, world_.build_dir, begun_ns_);
  }

  // Else its hashes may be those of other texts than the compiler read.
  static bool is_storable(const Collected& collected) {
    return collected.sound && collected.reads.are_known();
  }
  Reads canonical(const Reads& reads) const { return with_canonical_names(step_.roots, reads); }

  void store(const Reads& reads, const std::string& log) {
    const std::string record = write_reads(reads, By::Content);
    if (result_key_.empty()) result_key_ = key_of("result", record);
    Entry entry{result_key_, step_.what, basis_, {}};
    entry.parts["dependencies"] = record;
    for (const std::string& output : step_.outputs) {
      auto content = world_.files.read(in_staging(output));
      if (!content) return;
      report_.stored_bytes += content->size();
      entry.files.push_back({output, std::move(*content)});
    }
    std::string findings;
    for (const std::string& finding : report_.findings)
      findings += std::string(kFindingMark) + finding + "\n";
    entry.files.push_back({std::string(kLogName), findings + log});
    cache_.put(entry);
    remember_manifest(record, result_key_);
    report_.cache_key = result_key_;
  }

  void remember_manifest(const std::string& record, const std::string& result) {
    std::vector<EntryFile> all = {{result, record}};
    for (EntryFile& old : manifest_)
      if ((old.name != result || old.content != record) && all.size() < kMostCandidates)
        all.push_back(std::move(old));
    cache_.put({manifest_key_, "manifest of: " + step_.what, basis_, std::move(all)});
  }

  // ---- to obj/

  // A file with the same content is left alone: steps after this one then need not run.
  bool publish(const std::string& name, const std::string& content, const path& made = {}) {
    auto former = world_.files.read(in_obj(name));
    if (former && *former == content) return true;
    // The record of what was read goes first: next to what a run that is killed here has published,
    // the old one might hold again, once a header that appeared has gone.
    if (report_.changed.empty() && !world_.files.remove(in_obj(step_.reads_file()))) return false;
    report_.changed.push_back(name);
    // What the linker made has the right to be executed.
    if (!made.empty()) return static_cast<bool>(world_.files.publish(made, in_obj(name)));
    if (step_.kind != StepKind::Link)
      return static_cast<bool>(world_.files.write(in_obj(name), content, sys::Durable::No));
    return static_cast<bool>(world_.files.write_executable(in_obj(name), content));
  }

  bool leave(const Collected& collected, std::string_view log) {
    std::string plain;
    for (std::string_view line : text::lines(log)) {
      if (line.starts_with(kFindingMark))
        report_.findings.emplace_back(line.substr(kFindingMark.size()));
      else
        plain.append(line).append("\n");
    }
    if (!world_.files.write(in_obj(step_.key + ".basis"), dump(remembered()),
                            sys::Durable::Scratch))
      return false;
    if (!world_.files.write(in_obj(step_.key + ".log"), plain, sys::Durable::Scratch)) return false;
    return leave_record(collected);
  }

  // Last: whoever finds the record finds all that it speaks of. A step without one runs again.
  bool leave_record(const Collected& collected) {
    const path record = in_obj(step_.reads_file());
    return static_cast<bool>(
        collected.sound ? world_.files.write(record, write_reads(collected.reads, By::State),
                                             sys::Durable::Scratch)
                        : world_.files.remove(record));
  }

  const Step& step_;
  const StepWorld& world_;
  StepReport& report_;
  ContentHashes hashes_;
  Cache cache_;
  Json basis_;
  std::vector<EntryFile> manifest_;
  std::string manifest_key_, result_key_, log_;
  int64_t begun_ns_ = 0;
  std::future<Collected> reading_;  // the last member: it uses the others until it has ended
};

}  // namespace

uint64_t StepReport::peak_bytes() const {
  uint64_t peak = 0;
  for (const CommandRun& run : commands) peak = std::max(peak, run.peak_bytes);
  return peak;
}

Json to_json(const StepReport& report) {
  Json commands = Json::array();
  for (const CommandRun& run : report.commands)
    commands.push_back({{"program", run.program},
                        {"begin_ns", run.begin_ns},
                        {"seconds", run.seconds},
                        {"cpu_seconds", run.cpu_seconds},
                        {"peak_bytes", run.peak_bytes}});
  return {{"key", report.key},
          {"what", report.what},
          {"kind", report.kind},
          {"answer", static_cast<int>(report.answer)},
          {"origin", static_cast<int>(report.origin)},
          {"cache_key", report.cache_key},
          {"why", report.why},
          {"begin_ns", report.begin_ns},
          {"seconds", report.seconds},
          {"stored_bytes", report.stored_bytes},
          {"damaged", report.damaged},
          {"commands", commands},
          {"notes", report.notes},
          {"findings", report.findings},
          {"changed", report.changed}};
}

std::optional<StepReport> read_report(std::string_view text) {
  auto json = parse_json(text, "report");
  if (!json) return std::nullopt;
  try {
    StepReport report;
    report.key = json->at("key");
    report.what = json->at("what");
    report.kind = json->at("kind");
    report.answer = static_cast<Answer>(json->at("answer").get<int>());
    report.origin = static_cast<Origin>(json->at("origin").get<int>());
    report.cache_key = json->at("cache_key");
    report.why = json->at("why");
    report.begin_ns = json->at("begin_ns");
    report.seconds = json->at("seconds");
    report.stored_bytes = json->at("stored_bytes");
    report.damaged = json->at("damaged");
    report.notes = json->at("notes").get<Words>();
    report.findings = json->at("findings").get<Words>();
    report.changed = json->at("changed").get<Words>();
    for (const Json& one : json->at("commands"))
      report.commands.push_back({one.at("program"), one.at("begin_ns"), one.at("seconds"),
                                 one.at("cpu_seconds"), one.at("peak_bytes")});
    return report;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

Result<int> run_step(const Step& step, const StepWorld& world, StepReport& report) {
  return Runner(step, world, report).run();
}

}  // namespace kiln::build
