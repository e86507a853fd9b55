// SPDX-License-Identifier: Apache-2.0
#include "host/random.h"

#include <bit>
#include <cmath>

namespace kiln::host {
namespace {

constexpr uint64_t kWeyl = 0x9e3779b97f4a7c15;

uint64_t finalise(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// ln x = e ln 2 + 2 atanh((m - 1) / (m + 1)) for x = m 2^e with m in [sqrt(1/2), sqrt(2)); the
// argument of atanh is below 0.172, where 11 terms of its series reach double precision.
double natural_log(double x) {
  uint64_t raw = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(raw >> 52) - 1023;
  double m = std::bit_cast<double>((raw & 0x000fffffffffffff) | 0x3ff0000000000000);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    exponent += 1;
  }
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int n = 21; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  return exponent * 0.6931471805599453 + 2 * s * sum;
}

template <int N>
double polynomial(const double (&coefficients)[N], double x) {
  double sum = 0;
  for (int i = N - 1; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

// Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988): relative error about 1e-16.
constexpr double kCentreTop[] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                 1.9715909503065514427e3, 1.3731693765509461125e4,
                                 4.5921953931549871457e4, 6.7265770927008700853e4,
                                 3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr double kCentreBottom[] = {1.0,
                                    4.2313330701600911252e1,
                                    6.8718700749205790830e2,
                                    5.3941960214247511077e3,
                                    2.1213794301586595867e4,
                                    3.9307895800092710610e4,
                                    2.8729085735721942674e4,
                                    5.2264952788528545610e3};
constexpr double kMiddleTop[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                 5.76949722146069140550e0,  3.64784832476320460504e0,
                                 1.27045825245236838258e0,  2.41780725177450611770e-1,
                                 2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr double kMiddleBottom[] = {1.0,
                                    2.05319162663775882187e0,
                                    1.67638483018380384940e0,
                                    6.89767334985100004550e-1,
                                    1.48103976427480074590e-1,
                                    1.51986665636164571966e-2,
                                    5.47593808499534494600e-4,
                                    1.05075007164441684324e-9};
constexpr double kTailTop[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                               1.78482653991729133580e0,  2.96560571828504891230e-1,
                               2.65321895265761230930e-2, 1.24266094738807843860e-3,
                               2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr double kTailBottom[] = {1.0,
                                  5.99832206555887937690e-1,
                                  1.36929880922735805310e-1,
                                  1.48753612908506148525e-2,
                                  7.86869131145613259100e-4,
                                  1.84631831751005468180e-5,
                                  1.42151175831644588870e-7,
                                  2.04426310338993978564e-15};

double inverse_normal(double probability) {
  const double q = probability - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kCentreTop, r) / polynomial(kCentreBottom, r);
  }
  const double r = std::sqrt(-natural_log(q < 0 ? probability : 1 - probability));
  const double magnitude =
      r <= 5 ? polynomial(kMiddleTop, r - 1.6) / polynomial(kMiddleBottom, r - 1.6)
             : polynomial(kTailTop, r - 5) / polynomial(kTailBottom, r - 5);
  return q < 0 ? -magnitude : magnitude;
}

}  // namespace

uint64_t random_bits(uint64_t seed, uint64_t index) {
  return finalise(finalise(seed + kWeyl) + (index + 1) * kWeyl);
}

double uniform(uint64_t random, int bits) {
  return static_cast<double>(random >> (64 - bits)) / static_cast<double>(uint64_t{1} << bits);
}

// The middle of one of 2^52 equal cells: never 0 or 1, and symmetric about 1/2.
double normal(uint64_t random) {
  return inverse_normal((static_cast<double>(random >> 12) + 0.5) * 0x1p-52);
}

int64_t random_integer(uint64_t random, int64_t low, int64_t high) {
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const uint64_t scaled =
      static_cast<uint64_t>((static_cast<unsigned __int128>(random) * range) >> 64);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + scaled);
}

uint64_t seed_for_argument(uint64_t seed, uint64_t argument) {
  return finalise(seed * kWeyl + argument);
}

}  // namespace kiln::host
