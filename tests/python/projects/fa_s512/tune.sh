#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which tiles are right? Builds and checks each.
set -euo pipefail
cd "$(dirname "$0")"
export TORCH_CUDA_ARCH_LIST="${TORCH_CUDA_ARCH_LIST:-8.0;9.0+PTX}" MAX_JOBS="${MAX_JOBS:-2}"
for tiles in "8 32" "16 64"; do
  read -r m n <<<"$tiles"
  python fa_s512_tunable.py --block-m "$m" --block-n "$n" --seq 64
done
