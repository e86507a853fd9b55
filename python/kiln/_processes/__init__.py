# SPDX-License-Identifier: Apache-2.0
"""What do the processes run that the kiln command starts? Each is one: kiln._processes.bench."""
