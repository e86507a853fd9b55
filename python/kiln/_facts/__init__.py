# SPDX-License-Identifier: Apache-2.0
"""What is known besides a time? The machine, the bytes moved, the kernels that ran."""
