# SPDX-License-Identifier: Apache-2.0
"""What do %kiln and %%kiln do in a notebook? `%load_ext kiln` registers them."""
