# SPDX-License-Identifier: Apache-2.0
"""What does `kiln learn` do? It lists, starts, watches and checks the exercises of the lessons."""
