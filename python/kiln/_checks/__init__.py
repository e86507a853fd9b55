# SPDX-License-Identifier: Apache-2.0
"""Is what an op gives right? Forms of a call, what is expected, and the comparison of both."""
