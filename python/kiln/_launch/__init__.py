# SPDX-License-Identifier: Apache-2.0
"""How does Python launch a kernel that no op wraps? The engine's table, the driver, arguments."""
