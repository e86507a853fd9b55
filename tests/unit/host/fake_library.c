/* SPDX-License-Identifier: Apache-2.0
 *
 * What does src/host meet when it opens an op library? This one, written by hand in C: every kind of argument and of
 * result, an op that fails, and, by a macro, each way in which a library can be wrong. Its "device" is host memory; it
 * counts what is allocated, so that a test can see a leak. */
#include <kiln/abi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#if defined(FAKE_NO_SYMBOL)
EXPORT int not_kiln_library(void) { return 0; }
#else

static __thread char error_text[256];
static int64_t live_allocations;

static int fail(const char* text) {
  snprintf(error_text, sizeof error_text, "%s", text);
  return 1;
}

static size_t dtype_bytes(int32_t dtype) {
  switch (dtype) {
    case KILN_F32:
    case KILN_I32:
      return 4;
    case KILN_F64:
    case KILN_I64:
      return 8;
    case KILN_BF16:
      return 2;
    default:
      return 1;
  }
}

static void release_tensor(KilnTensor* tensor) {
  if (tensor->owner) {
    free(tensor->owner);
    --live_allocations;
  }
  free(tensor);
}

/* Sizes and strides live behind the struct. */
static KilnTensor* new_tensor(int32_t dtype, int32_t ndim, const int64_t* sizes) {
  KilnTensor* tensor = malloc(sizeof *tensor + 2 * (size_t)ndim * sizeof(int64_t));
  int64_t* dims = (int64_t*)(tensor + 1);
  size_t count = 1;
  for (int32_t d = ndim; d-- > 0;) {
    dims[d] = sizes[d];
    dims[ndim + d] = (int64_t)count;
    count *= (size_t)sizes[d];
  }
  tensor->owner = calloc(count ? count : 1, dtype_bytes(dtype));
  ++live_allocations;
  tensor->data = tensor->owner;
  tensor->sizes = dims;
  tensor->strides = dims + ndim;
  tensor->ndim = ndim;
  tensor->dtype = dtype;
  tensor->device_type = KILN_DEVICE_CPU;
  tensor->device_index = 0;
  tensor->release = release_tensor;
  return tensor;
}

static int64_t count_of(const KilnTensor* tensor) {
  int64_t count = 1;
  for (int32_t d = 0; d < tensor->ndim; ++d) count *= tensor->sizes[d];
  return count;
}

static float* element(const KilnTensor* tensor, int64_t linear) {
  int64_t offset = 0;
  for (int32_t d = tensor->ndim; d-- > 0;) {
    offset += linear % tensor->sizes[d] * tensor->strides[d];
    linear /= tensor->sizes[d];
  }
  return (float*)tensor->data + offset;
}

static void give(KilnValue* result, KilnTensor* tensor) {
  result->type = KILN_TYPE_TENSOR;
  result->as.tensor = tensor;
}

static int add(const KilnValue* in, KilnValue* out) {
  const KilnTensor *a = in[0].as.tensor, *b = in[1].as.tensor;
  if (a->dtype != KILN_F32 || b->dtype != KILN_F32) return fail("add: wants f32");
  if (count_of(a) != count_of(b)) return fail("add: shapes differ");
  KilnTensor* sum = new_tensor(KILN_F32, a->ndim, a->sizes);
  for (int64_t i = 0; i < count_of(a); ++i)
    ((float*)sum->data)[i] = *element(a, i) + *element(b, i) * (float)in[2].as.f;
  give(out, sum);
  return 0;
}

static int scale_int(const KilnValue* in, KilnValue* out) {
  out->type = KILN_TYPE_INT;
  out->as.i = count_of(in[0].as.tensor) * in[1].as.i;
  return 0;
}

static int scale_float(const KilnValue* in, KilnValue* out) {
  out->type = KILN_TYPE_FLOAT;
  out->as.f = (double)count_of(in[0].as.tensor) * in[1].as.f;
  return 0;
}

/* Tells what it was given, as text: every kind of argument at once. */
static char everything_text[1024];
static int everything(const KilnValue* in, KilnValue* out) {
  char* at = everything_text;
  char* end = everything_text + sizeof everything_text;
  at += snprintf(at, (size_t)(end - at), "i=%lld f=%g b=%lld s=%.*s/%u dtype=%lld device=%d:%d", (long long)in[0].as.i,
                 in[1].as.f, (long long)in[2].as.i, (int)in[3].count, in[3].as.s, in[3].count, (long long)in[4].as.i,
                 in[5].as.device.type, in[5].as.device.index);
  at += snprintf(at, (size_t)(end - at), " ints=");
  for (uint32_t i = 0; i < in[6].count; ++i)
    at += snprintf(at, (size_t)(end - at), "%lld,", (long long)in[6].as.ints[i]);
  at += snprintf(at, (size_t)(end - at), " floats=");
  for (uint32_t i = 0; i < in[7].count; ++i) at += snprintf(at, (size_t)(end - at), "%g,", in[7].as.floats[i]);
  at += snprintf(at, (size_t)(end - at), " tensors=");
  for (uint32_t i = 0; i < in[8].count; ++i)
    at += snprintf(at, (size_t)(end - at), "%lld,", (long long)count_of(in[8].as.tensors[i]));
  at += snprintf(at, (size_t)(end - at), " maybe=%s", in[9].type == KILN_TYPE_NONE ? "none" : "tensor");
  out->type = KILN_TYPE_STR;
  out->as.s = everything_text;
  out->count = (uint32_t)(at - everything_text);
  return 0;
}

static int fill_(const KilnValue* in, KilnValue* out) {
  (void)out;
  for (int64_t i = 0; i < count_of(in[0].as.tensor); ++i) *element(in[0].as.tensor, i) = (float)in[1].as.f;
  return 0;
}

static void release_alias(KilnTensor* tensor) { free(tensor); }

/* Returns its argument, as an in-place op does. */
static int twice_(const KilnValue* in, KilnValue* out) {
  KilnTensor* x = in[0].as.tensor;
  for (int64_t i = 0; i < count_of(x); ++i) *element(x, i) *= 2;
  KilnTensor* alias = malloc(sizeof *alias);
  *alias = *x;
  alias->release = release_alias;
  give(out, alias);
  return 0;
}

static int64_t int_results[] = {1, 2, 3};
static double float_results[] = {0.5, -1};

static int many(const KilnValue* in, KilnValue* out) {
  (void)in;
  const int64_t sizes[] = {2, 3};
  give(&out[0], new_tensor(KILN_I64, 2, sizes));
  for (int i = 0; i < 6; ++i) ((int64_t*)out[0].as.tensor->data)[i] = i;
  out[1].type = KILN_TYPE_BOOL;
  out[1].as.i = 1;
  out[2].type = KILN_TYPE_INT_LIST;
  out[2].count = 3;
  out[2].as.ints = int_results;
  out[3].type = KILN_TYPE_FLOAT_LIST;
  out[3].count = 2;
  out[3].as.floats = float_results;
  out[4].type = KILN_TYPE_TENSOR_LIST;
  out[4].count = 2;
  KilnTensor** tensor_results = malloc(2 * sizeof *tensor_results); /* the caller's to free */
  tensor_results[0] = new_tensor(KILN_F32, 1, sizes);
  tensor_results[1] = new_tensor(KILN_F32, 0, sizes);
  out[4].as.tensors = tensor_results;
  out[5].type = KILN_TYPE_DTYPE;
  out[5].as.i = KILN_BF16;
  out[6].type = KILN_TYPE_DEVICE;
  out[6].as.device.type = KILN_DEVICE_CUDA;
  out[6].as.device.index = 1;
  out[7].type = KILN_TYPE_NONE;
  return 0;
}

static int fails(const KilnValue* in, KilnValue* out) {
  (void)in;
  out->type = KILN_TYPE_TENSOR; /* left over from a half-done call: nobody may touch it */
  out->as.tensor = (KilnTensor*)0x10;
  return fail("it always fails");
}

/* Writes to a tensor that it has as const. */
static int clobbers(const KilnValue* in, KilnValue* out) {
  (void)out;
  ((float*)in[0].as.tensor->data)[0] += 1;
  return 0;
}

static int bad_result(const KilnValue* in, KilnValue* out) {
  static const int64_t sizes[] = {-5}, strides[] = {1};
  static KilnTensor tensor;
  tensor.sizes = sizes;
  tensor.strides = strides;
  tensor.ndim = 1;
  tensor.dtype = in[0].as.i == 0 ? KILN_F32 : 99;
  give(out, &tensor);
  return 0;
}

static int live(const KilnValue* in, KilnValue* out) {
  (void)in;
  out->type = KILN_TYPE_INT;
  out->as.i = live_allocations;
  return 0;
}

#define TENSOR(name, flags)          \
  {                                  \
    name, KILN_TYPE_TENSOR, flags, { \
      0, 0, { 0 }                    \
    }                                \
  }
#define PLAIN(name, kind)        \
  {                              \
    name, KILN_TYPE_##kind, 0, { \
      0, 0, { 0 }                \
    }                            \
  }
#define OPTIONAL(name, kind)                                                        \
  {                                                                                 \
    name, KILN_TYPE_##kind, KILN_PARAMETER_OPTIONAL | KILN_PARAMETER_HAS_DEFAULT, { \
      KILN_TYPE_NONE, 0, { 0 }                                                      \
    }                                                                               \
  }
static const KilnParameter add_in[] = {TENSOR("a", 0),
                                       TENSOR("b", 0),
                                       {"alpha",
                                        KILN_TYPE_FLOAT,
                                        KILN_PARAMETER_HAS_DEFAULT | KILN_PARAMETER_KEYWORD_ONLY,
                                        {KILN_TYPE_FLOAT, 0, {.f = 1}}}};
static const KilnParameter tensor_out[] = {TENSOR("", 0)};
static const KilnParameter scale_int_in[] = {TENSOR("x", 0), PLAIN("value", INT)};
static const KilnParameter scale_float_in[] = {TENSOR("x", 0), PLAIN("value", FLOAT)};
static const KilnParameter int_out[] = {PLAIN("", INT)};
static const KilnParameter float_out[] = {PLAIN("", FLOAT)};
static const KilnParameter everything_in[] = {
    PLAIN("i", INT),          PLAIN("f", FLOAT),           PLAIN("b", BOOL),
    PLAIN("s", STR),          PLAIN("dtype", DTYPE),       PLAIN("device", DEVICE),
    PLAIN("ints", INT_LIST),  PLAIN("floats", FLOAT_LIST), PLAIN("tensors", TENSOR_LIST),
    OPTIONAL("maybe", TENSOR)};
static const KilnParameter str_out[] = {PLAIN("", STR)};
static const KilnParameter fill_in[] = {TENSOR("x", KILN_PARAMETER_MUTABLE), PLAIN("value", FLOAT)};
static const KilnParameter twice_in[] = {TENSOR("x", KILN_PARAMETER_MUTABLE)};
static const KilnParameter many_out[] = {PLAIN("", TENSOR),     PLAIN("", BOOL),        PLAIN("", INT_LIST),
                                         PLAIN("", FLOAT_LIST), PLAIN("", TENSOR_LIST), PLAIN("", DTYPE),
                                         PLAIN("", DEVICE),     OPTIONAL("", TENSOR)};
static const KilnParameter one_in[] = {TENSOR("x", 0)};
static const KilnParameter kind_in[] = {PLAIN("kind", INT)};
static const KilnParameter clash_a_in[] = {PLAIN("x", STR)};
static const KilnParameter clash_b_in[] = {PLAIN("y", STR)};

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof(array)[0])
#define OP(name, overload, schema, doc, in, out) \
  { name, overload, schema, "", doc, "fake.cu", 1, COUNT(in), in, COUNT(out), out }
static const KilnOpInfo ops[] = {
    OP("add", "", "add(Tensor a, Tensor b, *, float alpha=1.0) -> Tensor", "a + alpha b", add_in, tensor_out),
    OP("scale", "int", "scale.int(Tensor x, SymInt value) -> SymInt", "", scale_int_in, int_out),
    OP("scale", "float", "scale.float(Tensor x, float value) -> float", "", scale_float_in, float_out),
    OP("everything", "", "everything(...) -> str", "", everything_in, str_out),
    {"fill_", "", "fill_(Tensor(a!) x, float value) -> ()", "", "", "fake.cu", 1, COUNT(fill_in), fill_in, 0, NULL},
    OP("twice_", "", "twice_(Tensor(a!) x) -> Tensor(a!)", "", twice_in, tensor_out),
    {"many", "", "many() -> (Tensor, bool, int[], float[], Tensor[], ScalarType, Device, Tensor?)", "", "", "fake.cu",
     1, 0, NULL, COUNT(many_out), many_out},
    {"fails", "", "fails() -> Tensor", "", "", "fake.cu", 1, 0, NULL, 1, tensor_out},
    {"clobbers", "", "clobbers(Tensor x) -> ()", "", "", "fake.cu", 1, 1, one_in, 0, NULL},
    OP("bad_result", "", "bad_result(int kind) -> Tensor", "", kind_in, tensor_out),
    {"live", "", "live() -> int", "", "", "fake.cu", 1, 0, NULL, 1, int_out},
    OP("clash", "a", "clash.a(str x) -> str", "", clash_a_in, str_out),
    OP("clash", "b", "clash.b(str y) -> str", "", clash_b_in, str_out),
};

typedef int (*Body)(const KilnValue*, KilnValue*);
static const Body bodies[] = {add,   scale_int, scale_float, everything, fill_, twice_, many,
                              fails, clobbers,  bad_result,  live,       NULL,  NULL};

static int call(uint32_t op, const KilnValue* arguments, uint32_t argument_count, KilnValue* results) {
  if (op >= COUNT(ops)) return fail("no such op");
  if (argument_count != ops[op].parameter_count) return fail("wrong number of arguments");
  return bodies[op](arguments, results);
}

static const char* last_error(void) { return error_text; }

static int default_device(int32_t* device_type, int32_t* device_index) {
  if (getenv("FAKE_NO_DEVICE")) return fail("neither a GPU nor the engine");
  *device_type = KILN_DEVICE_CPU;
  *device_index = 0;
  return 0;
}

static int allocate(int32_t device_type, int32_t device_index, size_t bytes, void** data) {
  (void)device_index;
  if (device_type != KILN_DEVICE_CPU) return fail("no GPU");
  *data = aligned_alloc(256, (bytes + 255) / 256 * 256);
  ++live_allocations;
  return *data ? 0 : fail("out of memory");
}

static int deallocate(int32_t device_type, int32_t device_index, void* data) {
  (void)device_type;
  (void)device_index;
  free(data);
  --live_allocations;
  return 0;
}

static int copy(void* to, int32_t to_device_type, const void* from, int32_t from_device_type, size_t bytes) {
  (void)to_device_type;
  (void)from_device_type;
  memcpy(to, from, bytes);
  return 0;
}

static int synchronize(int32_t device_type, int32_t device_index) {
  (void)device_type;
  (void)device_index;
  return 0;
}

static int register_torch(void) { return fail("no torch"); }
static const char* torch_status(void) { return "no torch"; }

#if defined(FAKE_WRONG_ABI)
#define FAKE_VERSION 77
#else
#define FAKE_VERSION KILN_ABI_VERSION
#endif
#if defined(FAKE_SHORT_TABLE)
#define FAKE_BYTES 24
#else
#define FAKE_BYTES sizeof(KilnLibrary)
#endif

static const KilnLibrary library = {FAKE_VERSION, FAKE_BYTES, "9.9.9",     "fake",         COUNT(ops),
                                    ops,          call,       last_error,  default_device, allocate,
                                    deallocate,   copy,       synchronize, register_torch, torch_status, 0, 0};

#if defined(FAKE_UNRESOLVED)
extern int a_function_that_nobody_has(void);
EXPORT int needs_it(void) { return a_function_that_nobody_has(); }
#endif

EXPORT const KilnLibrary* kiln_library(void);
EXPORT const KilnLibrary* kiln_library(void) {
#if defined(FAKE_NULL_TABLE)
  (void)library;
  return NULL;
#else
  return &library;
#endif
}
#endif
