# SPDX-License-Identifier: Apache-2.0
"""The drawn kernels, by repository."""
