# SPDX-License-Identifier: Apache-2.0
"""The drawn kernels, by repository."""

import ao  # noqa: F401
import fla_ops  # noqa: F401
import gems  # noqa: F401
import liger  # noqa: F401
import sgl  # noqa: F401
