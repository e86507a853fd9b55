# SPDX-License-Identifier: Apache-2.0
"""Which pieces of real kernels do random kernels have? Templates as in words.py, each of which
declares {new}; {in} is the input of the template's type."""

from __future__ import annotations

from .words import ELEMENTS, FLOAT, HALF, INT, UNSIGNED, Type

LOW = ELEMENTS - 1


def lines(text: str) -> str:
    """In one statement, which stays or goes as a whole."""
    return " ".join(line.strip() for line in text.strip().splitlines())


# Of one thread. The type is that of {new}; None: any that has operators.
PATTERNS: list[tuple[Type | None, str]] = [
    (
        UNSIGNED,  # a binary search
        f"""unsigned {{new}} = 0;
        {{ unsigned {{new}}_end = n * 16 + 7; const int {{new}}_key = {{i}};
          while ({{new}} < {{new}}_end) {{ const unsigned middle = ({{new}} + {{new}}_end) / 2;
            if (in_i[middle & {LOW}] < {{new}}_key) {{new}} = middle + 1;
            else {{new}}_end = middle; }} }}""",
    ),
    (
        INT,  # how many rounds until it escapes
        """int {new} = 0;
        { float re = 0.0f, im = 0.0f; const float {new}_a = {f} * 0.01f, {new}_b = {f} * 0.01f;
          while ({new} < 30 && re * re + im * im < 4.0f) {
            const float t = re * re - im * im + {new}_a;
            im = 2.0f * re * im + {new}_b; re = t; ++{new}; } }""",
    ),
    (
        FLOAT,  # Newton's method
        """float {new} = {f};
        for (int q = 0; q < 20; ++q) { const float t = 0.5f * ({new} + 2.0f / {new});
          if (fabsf(t - {new}) < 1e-3f) break; {new} = t; }""",
    ),
    (
        UNSIGNED,  # Euclid's algorithm
        """unsigned {new} = {u} & 1023;
        { unsigned {new}_b = {u} & 1023;
          while ({new}_b) {
            const unsigned t = {new} % {new}_b; {new} = {new}_b; {new}_b = t; } }""",
    ),
    (
        UNSIGNED,  # random numbers
        """unsigned {new} = {u};
        { const int {new}_rounds = {u} & 15;
          for (int q = 0; q < {new}_rounds; ++q) { {new} ^= {new} << 13; {new} ^= {new} >> 17;
            {new} ^= {new} << 5; } }""",
    ),
    (
        FLOAT,  # a polynomial, whose coefficients are constants
        """float {new} = 0.0f;
        { const float {new}_x = {f}; const int {new}_first = {u} & 31;
          for (int q = 0; q < 9; ++q) {new} = {new} * {new}_x + fixed_f[{new}_first + q]; }""",
    ),
    (INT, "int {new} = fixed_i[({u}) & 63];"),
    (FLOAT, "float {new} = fixed_f[({u}) & 63];"),
    (
        FLOAT,  # a structure of an array, and one that is a parameter
        f"""float {{new}};
        {{ const Point {{new}}_p = reinterpret_cast<const Point*>(in_f)[({{at}}) & {LOW // 4}];
          {{new}} = {{new}}_p.x * shape.scale + {{new}}_p.y * {{new}}_p.z
              + (float)(({{new}}_p.w & 255) + shape.rows); }}""",
    ),
    (
        INT,  # a place in an image
        f"""int {{new}};
        {{ const int {{new}}_y = i / shape.columns, {{new}}_x = i % shape.columns;
          {{new}} = in_i[({{new}}_x * shape.rows + {{new}}_y) & {LOW}]
              - in_i[(min({{new}}_y + 1, shape.rows) * shape.columns + {{new}}_x) & {LOW}]; }}""",
    ),
    (
        INT,  # a stack
        """int {new} = 0;
        { int {new}_stack[16]; int top = 0; {new}_stack[top++] = (int)({u} & 7);
          while (top > 0) { const int t = {new}_stack[--top]; {new} = {new} * 3 + t;
            if (t > 1) { {new}_stack[top++] = t / 2; {new}_stack[top++] = t - 2; } } }""",
    ),
    (
        None,  # a short array, sorted
        f"""{{T}} {{new}};
        {{ {{T}} part[6]; const int {{new}}_first = {{at}};
          for (int q = 0; q < 6; ++q) part[q] = {{in}}[({{new}}_first + q * 7) & {LOW}];
          for (int q = 1; q < 6; ++q) for (int r = q; r > 0 && part[r] < part[r - 1]; --r) {{
            const {{T}} t = part[r]; part[r] = part[r - 1]; part[r - 1] = t; }}
          {{new}} = part[{{part}}]; }}""",
    ),
    (
        None,  # sums in registers
        f"""{{T}} {{new}};
        {{ {{T}} sums[4] = {{{{e}}, {{e}}, {{e}}, {{e}}}}; const int {{new}}_first = {{at}};
          for (int q = 0; q < n; ++q) {{
            const {{T}} a = {{in}}[({{new}}_first + q) & {LOW}], b = {{in}}[(q * 64 + tid) & {LOW}];
            sums[0] += a * b; sums[1] += a; sums[2] -= b; sums[3] = sums[3] * a + b; }}
          {{new}} = sums[0] + sums[1] + sums[2] + sums[3]; }}""",
    ),
    (
        None,  # an outer product
        f"""{{T}} {{new}} = 0;
        {{ {{T}} sums[2][3] = {{}};
          for (int q = 0; q < 5; ++q) {{
            {{T}} a[2], b[3];
            for (int r = 0; r < 2; ++r) a[r] = {{in}}[(tid / 16 * 2 + r + q * 32) & {LOW}];
            for (int r = 0; r < 3; ++r) b[r] = {{in}}[(tid % 16 * 3 + r + q * 64) & {LOW}];
            for (int r = 0; r < 6; ++r) sums[r / 3][r % 3] += a[r / 3] * b[r % 3]; }}
          for (int r = 0; r < 6; ++r) {{new}} += sums[r / 3][r % 3]; }}""",
    ),
    (
        HALF,  # pairs
        f"""__half {{new}};
        {{ const __half2* {{new}}_in = reinterpret_cast<const __half2*>(in_h);
          __half2 t = __halves2half2({{e}}, {{e}});
          for (int q = 0; q < 4; ++q)
            t = __hfma2({{new}}_in[(i + q * 32) & {LOW // 2}], t, __half2half2({{e}}));
          {{new}} = __hadd(__low2half(t), __high2half(t)); }}""",
    ),
]

# Of the threads of a block, all of them; None: of the type of `tile` and `grid`, which has
# operators. A barrier stands before each.
OF_BLOCKS: list[tuple[Type | None, str]] = [
    (
        None,  # turned
        """grid[0][tid >> 4][tid & 15] = {e}; __syncthreads();
        {T} {new} = grid[0][tid & 15][tid >> 4];""",
    ),
    (
        None,  # a product of two tiles
        """grid[0][tid >> 4][tid & 15] = {e}; grid[1][tid >> 4][tid & 15] = {e}; __syncthreads();
        {T} {new} = 0;
        for (int q = 0; q < 16; ++q) {new} += grid[0][tid >> 4][q] * grid[1][q][tid & 15];""",
    ),
    (
        None,  # a product whose rows and columns are the thread's
        """grid[1][tid & 15][tid >> 4] = {e}; __syncthreads();
        {T} {new} = 0;
        for (int q = 0; q < 16; ++q)
          {new} += grid[1][threadIdx.y & 15][q] * grid[1][q][threadIdx.x & 15];""",
    ),
    (
        None,  # tiles that are read in turn, with one barrier for each
        f"""{{T}} {{new}} = 0;
        for (int t = 0; t < n / 4 + 1; ++t) {{
          grid[t & 1][tid >> 4][tid & 15] = {{in}}[(t * 64 + i) & {LOW}]; __syncthreads();
          for (int q = 0; q < 8; ++q)
            {{new}} += grid[t & 1][q][tid & 15] * grid[t & 1][tid >> 4][q]; }}""",
    ),
    (
        None,  # sums of all before, in steps that double
        """tile[tid] = {e}; __syncthreads();
        for (int o = 1; o < threads; o *= 2) {
          const {T} t = tid >= o ? tile[tid - o] : ({T})0; __syncthreads();
          tile[tid] += t; __syncthreads(); }
        {T} {new} = tile[tid];""",
    ),
    (
        None,  # the same, up and down a tree
        """tile[tid] = {e};
        { int o = 1;
          for (int d = threads >> 1; d > 0; d >>= 1, o *= 2) { __syncthreads();
            if (tid < d) tile[o * (2 * tid + 2) - 1] += tile[o * (2 * tid + 1) - 1]; }
          if (tid == 0) tile[threads - 1] = 0;
          for (int d = 1; d < threads; d *= 2) { o >>= 1; __syncthreads();
            if (tid < d) { const {T} t = tile[o * (2 * tid + 1) - 1];
              tile[o * (2 * tid + 1) - 1] = tile[o * (2 * tid + 2) - 1];
              tile[o * (2 * tid + 2) - 1] += t; } } }
        __syncthreads(); {T} {new} = tile[tid];""",
    ),
    (
        None,  # a bitonic sort
        """tile[tid] = {e}; __syncthreads();
        for (int k = 2; k <= threads; k *= 2) for (int j = k / 2; j > 0; j /= 2) {
          const int p = tid ^ j;
          if (p > tid && ((tid & k) == 0) == (tile[tid] > tile[p])) {
            const {T} t = tile[tid]; tile[tid] = tile[p]; tile[p] = t; }
          __syncthreads(); }
        {T} {new} = tile[tid];""",
    ),
    (
        None,  # a stencil, in several rounds
        """tile[tid] = {e}; __syncthreads();
        for (int t = 0; t < (n & 3); ++t) {
          const {T} next = (tid > 0 ? tile[tid - 1] : ({T})0) + tile[tid]
              - (tid < threads - 1 ? tile[tid + 1] : ({T})0);
          __syncthreads(); tile[tid] = next; __syncthreads(); }
        {T} {new} = tile[tid];""",
    ),
    (
        None,  # the greatest of a block: of its warps, then of those
        """{T} {new} = {e};
        for (int o = 16; o > 0; o >>= 1) { const {T} t = __shfl_xor_sync(~0u, {new}, o);
          {new} = t > {new} ? t : {new}; }
        if ((tid & 31) == 0) tile[tid >> 5] = {new};
        __syncthreads(); {new} = tile[0];
        for (int q = 1; q < threads / 32; ++q) {new} = tile[q] > {new} ? tile[q] : {new};""",
    ),
    (
        None,  # what is chosen, without what is not
        """{T} {new} = {e}; const bool {new}_is = {c};
        const unsigned {new}_all = __ballot_sync(~0u, {new}_is);
        if ((tid & 31) == 0) bin[tid >> 5] = __popc({new}_all);
        __syncthreads();
        unsigned {new}_at = __popc({new}_all & ((1u << (tid & 31)) - 1));
        for (int q = 0; q < tid >> 5; ++q) {new}_at += bin[q];
        if ({new}_is) tile[{new}_at] = {new};
        __syncthreads(); {new} = tile[tid];""",
    ),
]
OF_WARPS: list[tuple[Type | None, str]] = [
    (
        None,  # sums of all before
        """{T} {new} = {e};
        for (int o = 1; o < 32; o *= 2) { const {T} t = __shfl_up_sync(~0u, {new}, o);
          if ((tid & 31) >= o) {new} += t; }""",
    ),
    (
        None,  # a row that a warp adds up
        f"""{{T}} {{new}} = 0;
        for (int q = tid & 31; q < n * 7; q += 32) {{new}} += {{in}}[((i >> 5) * 77 + q) & {LOW}];
        for (int o = 16; o > 0; o >>= 1) {{new}} += __shfl_xor_sync(~0u, {{new}}, o);""",
    ),
    (
        None,  # a product of which each lane has a row
        f"""{{T}} {{new}} = 0;
        {{ const {{T}} t = {{e}};
          for (int q = 0; q < 32; ++q)
            {{new}} += __shfl_sync(~0u, t, q) * {{in}}[(q * 32 + (tid & 31)) & {LOW}]; }}""",
    ),
]
PATTERNS, OF_BLOCKS, OF_WARPS = (
    [(kind, lines(text)) for kind, text in each] for each in (PATTERNS, OF_BLOCKS, OF_WARPS)
)
