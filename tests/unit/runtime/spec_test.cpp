// SPDX-License-Identifier: Apache-2.0
// Does the text of KILN_OP fit a signature? Every answer here is found while compiling, as it is
// for an author.
#include <gtest/gtest.h>

#include "kiln/op.h"

namespace {

using kiln::Tensor;
using kiln::detail::Fit;

template <class F>
constexpr Fit fit(F*, const char* spec) {
  return kiln::detail::spec_fit<kiln::detail::Signature<F*>>(spec);
}

using Add = Tensor(const Tensor&, const Tensor&);
using Scale = void(Tensor&, double, int64_t);
using Many = kiln::Tensors<2>(const Tensor&, kiln::Optional<Tensor>, kiln::TensorList, kiln::Str,
                              kiln::Span<const int64_t>, kiln::Span<const double>, kiln::Dtype,
                              kiln::Device, bool);
constexpr Add* add = nullptr;
constexpr Scale* scale = nullptr;
constexpr Many* many = nullptr;

static_assert(fit(add, nullptr) == Fit::fits);
static_assert(fit(add, "a, b") == Fit::fits);
static_assert(fit(add, " a ,  b ") == Fit::fits);
static_assert(fit(add, "plus.one(a, b)") == Fit::fits);
static_assert(fit(add, "plus(Tensor a, Tensor b) -> Tensor") == Fit::fits);
static_assert(fit(add, "a") == Fit::too_few_names);
static_assert(fit(add, "a, b, c") == Fit::too_many_names);
static_assert(fit(add, "a b c") == Fit::unknown_type);
static_assert(fit(add, "a, 3") == Fit::syntax);
static_assert(fit(add, "a, b)") == Fit::syntax);
static_assert(fit(add, "plus(a, b") == Fit::syntax);
static_assert(fit(add, "plus(Tensor a, int b) -> Tensor") == static_cast<Fit>(101));
static_assert(fit(add, "plus(Tensor(a!) a, Tensor b) -> Tensor") == static_cast<Fit>(100));
static_assert(fit(add, "plus(Tensor a, Scalar b) -> Tensor") == Fit::unknown_type);
static_assert(fit(add, "plus(Tensor a, Tensor b) -> (Tensor, Tensor)") == Fit::result_count);
static_assert(fit(add, "plus(Tensor a, Tensor b) -> int") == Fit::result_type);
static_assert(fit(add, "plus(Tensor a, Tensor b) => Tensor") == Fit::syntax);
static_assert(fit(scale, "x, by=2.5, *, times=2") == Fit::fits);
static_assert(kiln::detail::default_parameter(fit(scale, "x, by=2.5, *, times=[1, (2)]")) == 3);
static_assert(fit(scale, "scale_(Tensor(a!) x, float by, *, SymInt times=1) -> ()") == Fit::fits);
static_assert(fit(scale, "Tensor(a!) x, float by, int times") == Fit::fits);
static_assert(fit(many,
                  "many(Tensor a, Tensor? b, Tensor[] c, str d='x, y)', int[] e=[1, 2], float[] f, "
                  "ScalarType g, Device h, "
                  "bool i=True) -> (Tensor q, Tensor r)") == Fit::fits);

TEST(Spec, IsCheckedWhileCompiling) {
  // The same function, run: constexpr evaluation and execution agree.
  EXPECT_EQ(fit(add, "a, b"), Fit::fits);
  EXPECT_EQ(fit(add, "a"), Fit::too_few_names);
}

}  // namespace
