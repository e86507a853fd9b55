// SPDX-License-Identifier: Apache-2.0
// How are times, sizes and rates written for people? In one way, in messages and on pages alike.
#pragma once

#include <cstdint>
#include <string>

namespace kiln {

// Three digits and a unit: "7.26 us", "53.2 ms", "999 ns". What is not a finite number is "-".
std::string time_text(double ns);
// "12.3 KB": files and memory of the host, in powers of ten as disks and package indexes count.
std::string bytes_text(double bytes);
// "48.0 KiB": memory of a GPU, in powers of two as CUDA's limits are.
std::string memory_text(double bytes);
// "3903 GB/s"
std::string rate_text(double gb_per_s);
// "1,234,567"
std::string grouped(uint64_t number);

}  // namespace kiln
