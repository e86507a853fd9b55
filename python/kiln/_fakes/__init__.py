# SPDX-License-Identifier: Apache-2.0
"""What does an op return for tensors without data? Fake rules: grammar, meaning, strides."""
