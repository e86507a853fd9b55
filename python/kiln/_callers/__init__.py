# SPDX-License-Identifier: Apache-2.0
"""How are ops called with arrays that are not torch's? NumPy, CuPy, JAX, any producer of DLPack."""
