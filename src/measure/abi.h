/* SPDX-License-Identifier: Apache-2.0
 *
 * What does a caller in another language need of the timing core? libkiln_measure.so and these
 * functions. Texts are UTF-8 and end in NUL; a returned `char*` is the caller's:
 * kiln_measure_free() it. Nothing is thrown across this interface.
 *
 * A JSON answer is the value asked for, or {"error": {"what", "why", "fix", "fault"}}. */
#ifndef KILN_MEASURE_ABI_H
#define KILN_MEASURE_ABI_H

#include <kiln/abi.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

#define KILN_MEASURE_ABI_VERSION 3

/* One thing to time. Each function returns 0, or 1 with the reason in error(). `user` is passed
 * on. */
typedef struct KilnContender {
  const char* name;
  void* user;
  int (*call)(void* user, int rotation); /* enqueue one call with the buffers of a rotation */
  int (*check)(void* user);              /* is the last result right? may be null */
  int (*capture)(void* user, int calls); /* make a CUDA graph of `calls` calls; may be null */
  int (*replay)(void* user);             /* launch it */
  const char* (*error)(void* user);      /* of the last failure: "error: ...\n  why: ..." */
  int rotations; /* 0 <= rotation < rotations */
  int bytes_declared; /* bytes are the author's word, not a sum over tensors */
  double bytes, flops;
  /* fresh: put new contents into the arguments; else write the present ones again. May be null */
  int (*refresh)(void* user, int fresh);
} KilnContender;

int kiln_measure_abi_version(void);

/* Times `contenders`; the first is what the benchmark is about. options: {"device": "cuda" |
 * "engine", "index", "stream" (a cudaStream_t as a number), "precision_percent", "min_warm_up_s",
 * "max_warm_up_s", "min_samples", "min_time_s", "max_time_s", "call_limit_s", "in_flight",
 * "trace_flush", "check_share", "side_s", "side", "kernels", "roof", "seed"}; all may be left
 * out. */
char* kiln_measure_run(const char* options_json, const KilnContender* contenders, int count);

/* A result, or an array of them, for reading. kind: "text", "markdown", "csv", "html",
 * "profile-text", "profile-html", "cold-text", "cold-html", "tune-html", "lanes-text",
 * "lanes-svg". */
char* kiln_measure_render(const char* kind, const char* json);

/* The values of a tensor spec ("randn:f32:2^20"), as `kiln call` makes them: {"dtype": torch's
 * number, "sizes", "strides", "offset", "bytes"}; *storage is kiln_measure_free()'d by the
 * caller. */
char* kiln_measure_tensor(const char* spec, uint64_t seed, uint64_t argument, void** storage);

/* The arguments of a command ("x=3", "2^20", "randn:f32:4"), a JSON array of texts, as values:
 * [{"name", "kind", "value"}]; measure/argument_json.h has the kinds. With the ops of a library
 * (kiln/abi.h) they are bound to the parameters of the op `name`; without (null, 0) each text means
 * what it is written as. */
char* kiln_measure_arguments(const KilnOpInfo* ops, uint32_t op_count, const char* name,
                             const char* texts_json);

/* How far may a result of this dtype (torch's number) be off? host/compare.h has the rule.
 * root_mean_square: of the finite expected values; median: of the magnitudes among them that are
 * not 0, of two in the middle the larger; rtol, atol: the caller's, NaN for those of the rule.
 * out: rtol and atol. Returns 1 for an unknown dtype, else 0. */
int kiln_measure_tolerance(int32_t dtype, double root_mean_square, double median, double rtol,
                           double atol, double out[2]);

/* The statistics, for tests and for callers with samples of their own. out: as many numbers as
 * the name says. */
/* out: median low high least greatest mean p25 p75 far */
void kiln_measure_summary(const double* samples, size_t count, double out[9]);
void kiln_measure_ratio(const double* a, const double* b, size_t count, uint64_t seed,
                        int resamples, double out[3]);
void kiln_measure_unpaired_ratio(const double* a, size_t a_count, const double* b, size_t b_count,
                                 uint64_t seed, int resamples, double out[3]);
double kiln_measure_drift(const double* samples, size_t count);

void kiln_measure_free(void* memory);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
