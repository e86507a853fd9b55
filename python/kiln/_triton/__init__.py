# SPDX-License-Identifier: Apache-2.0
"""How do Triton kernels run on the engine? A driver of Triton's kind, and where it is asked."""
