// SPDX-License-Identifier: Apache-2.0
// What do the checks of ATen/TensorUtils.h say? Its own words.
#include <kiln/compat/tensor_args.h>

namespace at {
inline namespace kc {

namespace {

std::string named(const TensorArg& t) {
  const std::string name = std::string("'") + t.name + "'";
  return t.pos == 0 ? name : c10::str("argument #", t.pos, " ", name);
}

std::string type_of(const TensorArg& t) {
  return std::string(t->is_cuda() ? "torch.cuda." : "torch.") + toString(t->scalar_type()) +
         "Tensor";
}

template <class... A>
void require(bool holds, CheckedFrom from, const A&... pieces) {
  if (!holds) throw Error(c10::str(pieces..., " (while checking arguments for ", from, ")"));
}

template <class F>
void all_same(CheckedFrom from, ArrayRef<TensorArg> list, const F& check) {
  const TensorArg* first = nullptr;
  for (const TensorArg& t : list) {
    if (!t->defined()) continue;
    if (first)
      check(from, *first, t);
    else
      first = &t;
  }
}

}  // namespace

void checkDim(CheckedFrom from, const TensorArg& t, int64_t dim) {
  require(t->dim() == dim, from, "Expected ", dim, "-dimensional tensor, but got ", t->dim(),
          "-dimensional tensor for ", named(t));
}
void checkDim(CheckedFrom from, const Tensor& t, const char* name, int pos, int64_t dim) {
  checkDim(from, TensorArg(t, name, pos), dim);
}
void checkDimRange(CheckedFrom from, const TensorArg& t, int64_t begin, int64_t end) {
  require(t->dim() >= begin && t->dim() < end, from, "Expected ", begin, " to ", end - 1,
          " dimensions, but got ", t->dim(), "-dimensional tensor for ", named(t));
}
void checkSameDim(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  require(a->dim() == b->dim(), from, "Expected tensor for ", named(a),
          " to have the same dimension as tensor for ", named(b), "; but ", a->dim(),
          " does not equal ", b->dim());
}
void checkContiguous(CheckedFrom from, const TensorArg& t) {
  require(t->is_contiguous(), from,
          "Expected contiguous tensor, but got non-contiguous tensor for ", named(t));
}
void checkAllContiguous(CheckedFrom from, ArrayRef<TensorArg> list) {
  for (const TensorArg& t : list)
    if (t->defined()) checkContiguous(from, t);
}
void checkSize(CheckedFrom from, const TensorArg& t, IntArrayRef sizes) {
  checkDim(from, t, static_cast<int64_t>(sizes.size()));
  require(t->sizes() == sizes, from, "Expected tensor of size ", sizes, ", but got tensor of size ",
          t->sizes(), " for ", named(t));
}
void checkSize(CheckedFrom from, const TensorArg& t, int64_t dim, int64_t size) {
  require(t->size(dim) == size, from, "Expected tensor to have size ", size, " at dimension ", dim,
          ", but got size ", t->size(dim), " for ", named(t));
}
void checkSameSize(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  require(a->sizes() == b->sizes(), from, "Expected tensor for ", named(a),
          " to have same size as tensor for ", named(b), "; but ", a->sizes(), " does not equal ",
          b->sizes());
}
void checkAllSameSize(CheckedFrom from, ArrayRef<TensorArg> list) {
  all_same(from, list, checkSameSize);
}
void checkNumel(CheckedFrom from, const TensorArg& t, int64_t numel) {
  require(t->numel() == numel, from, "Expected tensor for ", named(t), " to have ", numel,
          " elements; but it actually has ", t->numel(), " elements");
}
void checkSameNumel(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  require(a->numel() == b->numel(), from, "Expected tensor for ", named(a),
          " to have same number of elements as tensor for ", named(b), "; but ", a->numel(),
          " does not equal ", b->numel());
}
void checkAllSameNumel(CheckedFrom from, ArrayRef<TensorArg> list) {
  all_same(from, list, checkSameNumel);
}
void checkScalarType(CheckedFrom from, const TensorArg& t, ScalarType type) {
  require(t->scalar_type() == type, from, "Expected tensor for ", named(t), " to have scalar type ",
          type, "; but got ", type_of(t), " instead");
}
void checkScalarTypes(CheckedFrom from, const TensorArg& t, ArrayRef<ScalarType> types) {
  std::string wanted;
  for (ScalarType type : types) {
    if (t->scalar_type() == type) return;
    wanted += (wanted.empty() ? "" : ", ") + std::string(toString(type));
  }
  require(false, from, "Expected tensor for ", named(t),
          " to have one of the following scalar types: ", wanted, "; but got ", type_of(t),
          " instead");
}
void checkSameType(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  const std::string ours = type_of(a), others = type_of(b);
  require(ours == others, from, "Expected tensor for ", named(a),
          " to have the same type as tensor for ", named(b), "; but type ", ours,
          " does not equal ", others);
}
void checkAllSameType(CheckedFrom from, ArrayRef<TensorArg> list) {
  all_same(from, list, checkSameType);
}
void checkSameGPU(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  std::string on_cpu;
  for (const TensorArg* t : {&a, &b})
    if ((*t)->is_cpu()) on_cpu += "Tensor for " + named(*t) + " is on CPU, ";
  const bool both = a->is_cpu() && b->is_cpu();
  require(on_cpu.empty(), from, on_cpu, "but expected ", both ? "them" : "it", " to be on GPU");
  require(a->get_device() == b->get_device(), from, "Expected tensor for ", named(a),
          " to have the same device as tensor for ", named(b), "; but device ", a->get_device(),
          " does not equal ", b->get_device());
}
void checkAllSameGPU(CheckedFrom from, ArrayRef<TensorArg> list) {
  all_same(from, list, checkSameGPU);
}
void checkDefined(CheckedFrom from, const TensorArg& t) {
  require(t->defined(), from, "Expected tensor for ", named(t),
          " to be non-null, but it was undefined ");
}
void checkAllDefined(CheckedFrom from, ArrayRef<TensorArg> list) {
  for (const TensorArg& t : list) checkDefined(from, t);
}

}  // namespace kc
}  // namespace at
